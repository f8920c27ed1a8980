"""A dispatch without Temporal: the worker's own activities, one after the other.

What stands here is what DispatchWorkflow decides, which is little: the verdict on each attempt is
the activities'. A test compares the records of both.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from harn_temporal.activities.attempt import AttemptActivities
from harn_temporal.activities.breaker import PredicateBreaker
from harn_temporal.activities.handler_threads import HandlerThreads
from harn_temporal.activities.predicate import PredicateActivities
from harn_temporal.contracts import (
    AttemptOutcome,
    AttemptRequest,
    CancelledDispatch,
    DispatchRequest,
    DispatchStatus,
    PredicateRequest,
)
from harn_temporal.errors import StoreUnavailableError
from harn_temporal.eventlog.log import EventLog, Record
from harn_temporal.handlers import HandlerLoader
from harn_temporal.headers import WORKFLOW_ID
from harn_temporal.testing.fake_clock import FakeClock
from harn_temporal.testing.results import Attempt, DispatchResult
from harn_temporal.testing.watched_handlers import LastRaised, StandIn, StandInHop, watched
from harn_temporal.workflows.activity_types import ATTEMPT_FAILED, STORE_UNAVAILABLE

T = TypeVar("T")


class Dispatcher:
    """Dispatches requests whose envelopes are in `log`, on a clock that skips every wait."""

    def __init__(
        self,
        log: EventLog,
        handlers: HandlerLoader,
        agents: Mapping[str, StandIn],
        clock: FakeClock,
    ) -> None:
        self._log = log
        self._clock = clock
        self._raised = LastRaised()
        executor = HandlerThreads()
        load = lru_cache(maxsize=None)(watched(handlers.load, self._raised))
        hop = StandInHop(agents, self._raised, executor, clock)
        self._attempts = AttemptActivities(log, load, executor, hop, clock)
        self._predicates = PredicateActivities(
            log, load, executor, PredicateBreaker(clock), clock=clock
        )

    async def dispatch(self, request: DispatchRequest, dispatch_id: str) -> DispatchResult:
        """As a worker would, but for the gates: dispatches come one by one here."""
        ungated = request.binding.model_copy(update={"gates": None})
        request = request.model_copy(update={"binding": ungated})
        status, error = await self._predicate(request, dispatch_id)
        attempts: list[Attempt] = []
        result, waited_ms = None, 0
        while status is None:
            begun_at_ms = self._clock()
            outcome = await self._attempt(request, dispatch_id, len(attempts) + 1)
            attempts.append(self._told(outcome, begun_at_ms))
            status, result, error = outcome.final, outcome.result, outcome.error
            if status is None and outcome.retry_in_ms is not None:
                self._clock.advance(outcome.retry_in_ms)
                waited_ms += outcome.retry_in_ms
        return DispatchResult(
            trigger_id=request.binding.trigger_id,
            binding_key=request.binding.binding_key,
            event_id=request.event_id,
            status=status,
            attempts=tuple(attempts),
            result=result,
            error=error,
            waited_ms=waited_ms,
            records=await self._records(request, dispatch_id),
        )

    async def _predicate(
        self, request: DispatchRequest, dispatch_id: str
    ) -> tuple[DispatchStatus | None, str | None]:
        """How the dispatch ends before its first attempt; None where it goes on."""
        if request.binding.when is None:
            return None, None
        message = PredicateRequest(dispatch=request, dispatch_id=dispatch_id)
        verdict = await _run(self._predicates.evaluate_when, message)
        if verdict.cancelled:
            cancelled = CancelledDispatch(dispatch=request, dispatch_id=dispatch_id, attempts=0)
            await _run(self._attempts.record_cancelled, cancelled)
            return "cancelled", "cancelled"
        return (None, None) if verdict.passed else ("skipped", verdict.error)

    async def _attempt(
        self, request: DispatchRequest, dispatch_id: str, attempt: int
    ) -> AttemptOutcome:
        message = AttemptRequest(dispatch=request, dispatch_id=dispatch_id, attempt=attempt)
        try:
            return await _run(self._attempts.run_attempt, message)
        except ApplicationError as error:
            if error.type != ATTEMPT_FAILED:
                raise
            [outcome] = error.details
            assert isinstance(outcome, AttemptOutcome)  # what `told` puts there
            return outcome

    def _told(self, outcome: AttemptOutcome, begun_at_ms: int) -> Attempt:
        return Attempt(
            number=outcome.attempt,
            status=outcome.status,
            started_at_ms=begun_at_ms,
            result=outcome.result,
            error=outcome.error,
            error_class=outcome.error_class,
            retry_in_ms=outcome.retry_in_ms,
            exception=self._raised.take(),
        )

    async def _records(self, request: DispatchRequest, dispatch_id: str) -> tuple[Record, ...]:
        """What is about this event and binding, in the order of topics and then of ids."""
        binding_key = request.binding.binding_key
        found = []
        for head in await self._log.topics():
            for record in await self._log.read(head.topic, limit=head.last_id):
                headers = record.headers
                of_another = headers.get("binding_key", binding_key) != binding_key
                of_another |= headers.get(WORKFLOW_ID, dispatch_id) != dispatch_id
                if headers.get("event_id") == request.event_id and not of_another:
                    found.append(record)
        return tuple(found)


async def _run(activity: Callable[[Any], Coroutine[Any, Any, T]], message: Any) -> T:
    try:
        return await ActivityEnvironment().run(activity, message)
    except ApplicationError as error:
        if error.type == STORE_UNAVAILABLE:
            raise StoreUnavailableError(str(error)) from error
        raise
