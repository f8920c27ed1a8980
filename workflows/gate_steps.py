"""The way of a dispatch through the gates of its binding."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from temporalio import workflow

from harn_temporal.contracts import AttemptOutcome, DispatchEnd, DispatchRequest, EventAddress
from harn_temporal.gate_contracts import GateAnswer, GateRequest
from harn_temporal.gates.decisions import Skip, Wait
from harn_temporal.gates.models import Gates

LONGEST_KEPT_WAIT = timedelta(seconds=10)
"""Before a longer retry wait the attempt's end gave the concurrency permit back."""

Ask = Callable[[GateRequest], Awaitable[GateAnswer]]
Show = Callable[[Wait, datetime], None]


class GateSteps:
    """Which gates a dispatch has passed. `ask` asks those that follow, in one transaction.

    A dispatch that waits asks again at the time it was told, or when it is signalled: somebody
    who freed a place has decided by then, and a signal that is lost costs the time until then.
    """

    def __init__(self, request: DispatchRequest, dispatch_id: str) -> None:
        self._request = request
        self._dispatch_id = dispatch_id
        self._kinds = [kind for kind, _ in (request.binding.gates or Gates()).in_order()]
        # One that goes on from an attempt has passed them, apart from what that gave back.
        self._passed = 0 if request.resume is None else len(self._kinds)
        self._arrived_at_ms: int | None = None
        self._signals = 0
        self.batch: EventAddress | None = None

    @property
    def passed(self) -> bool:
        return self._passed == len(self._kinds)

    def signal(self) -> None:
        self._signals += 1

    def gave_back(self, outcome: AttemptOutcome) -> None:
        """Note what the end of an attempt gave back for the wait until the next."""
        waits = timedelta(milliseconds=outcome.retry_in_ms or 0)
        if waits > LONGEST_KEPT_WAIT and "concurrency" in self._kinds:
            self._passed = self._kinds.index("concurrency")
            self._arrived_at_ms = self._arrived_at_ms or 0  # ahead of all that arrive

    def lost(self) -> None:
        """Its permits expired, and others hold them: what is held is asked for again."""
        held = [kind for kind in self._kinds if kind in {"singleton", "concurrency"}]
        if held:
            self._passed = self._kinds.index(held[0])

    async def pass_all(
        self, ask: Ask, begins: Callable[[timedelta | None], None], show: Show, attempts: int
    ) -> Skip | DispatchEnd | None:
        """Wait until all gates are passed; else returns the end of the dispatch.

        `begins` is called before each wait, with its length where that is known; what it raises
        leaves the dispatch at its gate.
        """
        parked = False
        while True:
            heard = self._signals
            answer = await ask(
                GateRequest(
                    dispatch=self._request,
                    dispatch_id=self._dispatch_id,
                    permit_id=str(workflow.uuid4()),
                    passed=self._passed,
                    attempts=attempts,
                    arrived_at_ms=self._arrived_at_ms,
                    parked=parked,
                )
            )
            if answer.ended is not None:
                return answer.ended
            self._note(answer)
            if answer.skip is not None:
                return answer.skip
            wait = answer.wait
            if wait is None:
                return None
            delay = timedelta(milliseconds=max(1, wait.until_ms - wait.now_ms))
            begins(None if wait.kind == "concurrency" else delay)
            parked = True
            show(wait, workflow.now() + delay)
            await self._until(heard, delay, wait)

    def _note(self, answer: GateAnswer) -> None:
        self._passed = answer.passed
        self.batch = answer.batch or self.batch
        for permit in answer.permits:
            if permit.kind == "concurrency":
                self._arrived_at_ms = permit.arrived_at_ms

    async def _until(self, heard: int, delay: timedelta, wait: Wait) -> None:
        try:
            await workflow.wait_condition(
                lambda: self._signals > heard,
                timeout=delay,
                timeout_summary=f"{wait.kind} {wait.gate}"[:200],
            )
        except TimeoutError:
            return
