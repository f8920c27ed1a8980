"""What a dispatch does just now, for its query and for its page."""

from __future__ import annotations

from datetime import datetime

from harn_temporal.clock import rfc3339
from harn_temporal.contracts import (
    AttemptOutcome,
    DispatchOutcome,
    DispatchPhase,
    DispatchRequest,
    DispatchState,
)
from harn_temporal.gates.decisions import Wait
from harn_temporal.workflows.dispatch_page import DispatchPage


class DispatchProgress:
    """Told of each step. `page` is None where there is no page of its own to keep."""

    def __init__(self, request: DispatchRequest, page: DispatchPage | None) -> None:
        self._page = page
        self._phase: DispatchPhase = "attempt" if request.binding.when is None else "predicate"
        self._attempt = 0 if request.resume is None else request.resume.attempt
        self._max_attempts = request.binding.retry.max_attempts
        self._until: datetime | None = None
        self._last_error: str | None = None
        self._outcome: DispatchOutcome | None = None

    @property
    def state(self) -> DispatchState:
        return DispatchState(
            phase=self._phase,
            attempt=self._attempt,
            max_attempts=self._max_attempts,
            until=None if self._until is None else rfc3339(int(self._until.timestamp() * 1000)),
            last_error=self._last_error,
            outcome=self._outcome,
        )

    def predicate(self) -> None:
        self._enter("predicate")
        if self._page:
            self._page.predicate()

    def gate_wait(self, wait: Wait, until: datetime, *, first: bool) -> None:
        self._enter("gate_wait", until)
        if self._page:
            self._page.gate_wait(wait, until, first=first)

    def passed_gates(self) -> None:
        if self._page:
            self._page.passed_gates()

    def attempt(self, attempt: int) -> None:
        self._attempt = attempt
        self._enter("attempt")
        if self._page:
            self._page.attempt(attempt)

    def attempted(self, outcome: AttemptOutcome) -> None:
        self._last_error = outcome.error

    def store_wait(self, until: datetime) -> None:
        self._enter("store_wait", until)
        if self._page:
            self._page.store_wait(until)

    def follows(self) -> None:
        if self._page:
            self._page.follows()

    def following(self, outcome: AttemptOutcome, until: datetime, give_up: datetime) -> None:
        self._enter("following", until)
        self._last_error = outcome.error
        if self._page:
            self._page.following(outcome, until, give_up)

    def gives_up_task(self) -> None:
        if self._page:
            self._page.cancelling()

    def retry_wait(self, outcome: AttemptOutcome, delay_ms: int, until: datetime) -> None:
        self._enter("retry_wait", until)
        if self._page:
            self._page.retry_wait(outcome.attempt, delay_ms, until, outcome.error)

    def cancelling(self) -> None:
        self._enter("cancelling")
        if self._page:
            self._page.cancelling()

    def ended(self, outcome: DispatchOutcome) -> None:
        self._enter("ended")
        self._last_error, self._outcome = outcome.error, outcome
        if self._page:
            self._page.ended(outcome.status, outcome.attempt_count, outcome.error)

    def _enter(self, phase: DispatchPhase, until: datetime | None = None) -> None:
        self._phase, self._until = phase, until
