"""The steps of a dispatch: the predicate, then gates and attempts, until one is the last."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from harn_temporal.contracts import (
    AttemptOutcome,
    CancelledDispatch,
    DispatchEnd,
    DispatchOutcome,
    DispatchRequest,
    DispatchState,
    PredicateRequest,
    PredicateVerdict,
)
from harn_temporal.gate_contracts import GateAnswer, GateRequest
from harn_temporal.gates.decisions import Skip, Wait
from harn_temporal.workflows.activity_types import EVALUATE_WHEN, PASS_GATES, RECORD_CANCELLED
from harn_temporal.workflows.attempt_steps import AttemptSteps
from harn_temporal.workflows.calls import UNTIL_RECORDED, call, cancel_requested, record
from harn_temporal.workflows.dispatch_page import DispatchPage, after, retry_summary
from harn_temporal.workflows.dispatch_progress import DispatchProgress
from harn_temporal.workflows.follow_steps import FollowSteps
from harn_temporal.workflows.gate_steps import GateSteps
from harn_temporal.workflows.waits import Waits, at_end, waiting

PREDICATE_TIMEOUT = timedelta(minutes=2)
"""Of one execution of evaluate_when: the predicate's own 30 s, and time for the store."""


class Dispatch:
    """One event for one binding, from the predicate to its outcome.

    `dispatch_id` names it in the log's idempotency keys: the id of its workflow, or of its job
    where a consumer runs it inline. `page` is None where there is no page of its own to keep.
    A cancelled dispatch returns an outcome like any other; only a second cancellation escapes.
    """

    def __init__(
        self,
        request: DispatchRequest,
        *,
        dispatch_id: str,
        page: DispatchPage | None = None,
        waits: Waits | None = None,
    ) -> None:
        self._request = request
        self._dispatch_id = dispatch_id
        self._progress = DispatchProgress(request, page)
        self._waits = waits
        self._gates = GateSteps(request, dispatch_id)
        self._waits_at_gate = False

    @property
    def request(self) -> DispatchRequest:
        """As it is now: with the batch that it is dispatched for, once that is known."""
        return self._request

    def ask_gates_again(self) -> None:
        """Somebody freed a place at a gate, or decided about this dispatch."""
        self._gates.signal()

    @property
    def state(self) -> DispatchState:
        return self._progress.state

    async def run(self) -> DispatchOutcome:
        ended = 0  # attempts whose outcome is written
        try:
            outcome = self._request.resume
            refused = await self._refusal()
            if refused is not None:
                return self._end(refused)
            while outcome is not None or not cancel_requested():
                if outcome is None:
                    found = await self._next(ended)
                    if isinstance(found, DispatchEnd):
                        return self._end(found)
                    outcome = found
                if outcome.pending:
                    outcome = await self._follow(outcome)
                ended = outcome.attempt
                self._progress.attempted(outcome)
                if outcome.final is not None:
                    return self._end(DispatchEnd.of(outcome))
                self._gates.gave_back(outcome)
                if not cancel_requested():
                    await self._retry_wait(outcome)
                outcome = None
        except (asyncio.CancelledError, ActivityError) as error:
            if not is_cancelled_exception(error):
                raise
        return self._end(await self._cancel(ended))

    async def _refusal(self) -> DispatchEnd | None:
        """The end of a dispatch whose predicate says no, or that was cancelled before it."""
        if self._request.resume is not None or self._request.binding.when is None:
            return None
        verdict = await self._predicate()
        if verdict.cancelled:
            return await self._cancel(0)
        if verdict.passed:
            return None
        return DispatchEnd(status="skipped", attempts=0, error=verdict.error)

    async def _predicate(self) -> PredicateVerdict:
        self._progress.predicate()
        return await call(
            EVALUATE_WHEN,
            PredicateRequest(dispatch=self._request, dispatch_id=self._dispatch_id),
            start_to_close=PREDICATE_TIMEOUT,
            retry=UNTIL_RECORDED,
            heartbeat=timedelta(milliseconds=self._request.heartbeat_timeout_ms),
            summary="predicate `when`",
        )

    async def _next(self, ended: int) -> AttemptOutcome | DispatchEnd:
        """The next attempt's outcome, or the end that a gate made instead of it."""
        while True:
            held_back = await self._pass_gates(ended)
            if held_back is not None:
                return held_back
            attempt = AttemptSteps(self._request, self._dispatch_id, ended + 1, self._progress)
            outcome = await attempt.run()
            if outcome is not None:
                return outcome
            self._gates.lost()

    async def _pass_gates(self, attempts: int) -> DispatchEnd | None:
        """The end of a dispatch that a gate holds back for good; None where it may go on."""
        if self._gates.passed:
            return None
        with at_end(self._gate_wait_ends):
            refusal = await self._gates.pass_all(
                self._ask_gates, self._gate_wait_begins, self._gate_wait, attempts
            )
        waited, self._waits_at_gate = self._waits_at_gate, False
        if isinstance(refusal, Skip):
            return DispatchEnd(status="skipped", attempts=attempts, error=_reason(refusal))
        if refusal is not None:
            return refusal
        if waited:
            self._progress.passed_gates()
        if self._gates.batch is not None:
            self._request = self._request.model_copy(update={"batch": self._gates.batch})
        return None

    def _gate_wait_begins(self, delay: timedelta | None) -> None:
        if self._waits:
            self._waits.begins(None, delay)

    def _gate_wait(self, wait: Wait, until: datetime) -> None:
        self._progress.gate_wait(wait, until, first=not self._waits_at_gate)
        self._waits_at_gate = True

    def _gate_wait_ends(self) -> None:
        if self._waits_at_gate and self._waits:
            self._waits.ends()

    async def _ask_gates(self, message: GateRequest) -> GateAnswer:
        return await record(PASS_GATES, message, "gates")

    async def _follow(self, pending: AttemptOutcome) -> AttemptOutcome:
        steps = FollowSteps(self._request, self._dispatch_id, pending, self._progress, self._waits)
        return await steps.run()

    async def _retry_wait(self, outcome: AttemptOutcome) -> None:
        delay_ms = outcome.retry_in_ms or 0
        if delay_ms == 0:
            return
        delay = timedelta(milliseconds=delay_ms)
        with waiting(self._waits, outcome, delay):
            self._progress.retry_wait(outcome, delay_ms, after(delay))
            backoff = self._request.binding.retry.schedule.backoff
            await workflow.sleep(delay, summary=retry_summary(delay_ms, backoff))

    async def _cancel(self, attempts: int) -> DispatchEnd:
        self._progress.cancelling()
        message = CancelledDispatch(
            dispatch=self._request, dispatch_id=self._dispatch_id, attempts=attempts
        )
        return await record(RECORD_CANCELLED, message, "record the cancellation")

    def _end(self, end: DispatchEnd) -> DispatchOutcome:
        binding = self._request.binding
        outcome = DispatchOutcome(
            trigger_id=binding.trigger_id,
            binding_key=binding.binding_key,
            event_id=self._request.event_id,
            attempt_count=end.attempts,
            status=end.status,
            handler_kind=binding.handler.kind,
            target_uri=binding.handler.uri,
            replay_of_event_id=self._request.replay_of_event_id,
            result=end.result,
            result_address=end.result_address,
            error=end.error,
        )
        self._progress.ended(outcome)
        return outcome


def _reason(skip: Skip) -> str:
    """For people; the record has all of it."""
    reason = skip.detail.get("reason")
    where = skip.detail.get("gate")
    return f"held back by {where}" + (f": {reason}" if reason else "") if where else str(reason)
