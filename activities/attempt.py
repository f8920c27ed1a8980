"""The activities of an attempt: run it, or report one whose worker cannot."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from harn_temporal.activities.a2a_hop import AgentHop
from harn_temporal.activities.attempt_end import outcome_of_end, told
from harn_temporal.activities.attempt_log import AttemptLog, PermitsLostError
from harn_temporal.activities.gate_wakes import Wakes, no_signal
from harn_temporal.activities.handler_call import HandlerCall, HandlerEnd, describe
from harn_temporal.activities.heartbeats import beating
from harn_temporal.activities.interruption import interruption
from harn_temporal.activities.queue_route import enqueued
from harn_temporal.activities.store_access import store_failures_told, until_written
from harn_temporal.attempt_figures import AttemptFigures, StartedAttempt
from harn_temporal.clock import Clock, system_clock
from harn_temporal.context import HandlerContext
from harn_temporal.contracts import (
    AttemptOutcome,
    AttemptRequest,
    CancelledDispatch,
    DispatchEnd,
    DispatchRequest,
    LostAttempt,
)
from harn_temporal.dispatch_records import verdict
from harn_temporal.errors import HandlerLoadError
from harn_temporal.event_address import with_event
from harn_temporal.eventlog.log import EventLog
from harn_temporal.handlers import Handler
from harn_temporal.telemetry import tracing
from harn_temporal.telemetry.dispatch_spans import dispatch_span, tell_outcome
from harn_temporal.workflows.activity_types import (
    PERMITS_LOST,
    RECORD_CANCELLED,
    RECORD_LOST_ATTEMPT,
    RUN_ATTEMPT,
)

LoadHandler = Callable[[str], Handler]


class AttemptActivities:
    """`load_handler` gives the function of a name in the manifest, or raises HandlerLoadError."""

    def __init__(
        self,
        log: EventLog,
        load_handler: LoadHandler,
        executor: Executor,
        hop: AgentHop,
        clock: Clock = system_clock,
        *,
        figures: AttemptFigures | None = None,
        wakes: Wakes | None = None,
    ) -> None:
        self._log = log
        self._load_handler = load_handler
        self._hop = hop
        self._executor = executor
        self._clock = clock
        self._figures = figures or AttemptFigures()
        self._wakes = wakes or Wakes(no_signal)

    @activity.defn(name=RUN_ATTEMPT.name)
    async def run_attempt(self, message: AttemptRequest) -> AttemptOutcome:
        with self._figures.running_one(message.dispatch.binding.trigger_id):
            return await self._run_attempt(message)

    async def _run_attempt(self, message: AttemptRequest) -> AttemptOutcome:
        with beating():
            with store_failures_told():
                request = await with_event(self._log, message.dispatch)
            with dispatch_span(tracing.ATTEMPT, request, attempt=message.attempt) as span:
                joined = request.model_copy(update={"traceparent": span.traceparent})
                outcome = await self._attempted(message, joined)
                tell_outcome(span, joined, outcome)
        return told(request, outcome)

    async def _attempted(self, message: AttemptRequest, request: DispatchRequest) -> AttemptOutcome:
        with store_failures_told():
            records = self._records(request, message.dispatch_id, message.attempt)
            outcome = await _started(records)
            self._tell_start(request, message.attempt, records.started_at_ms)
        if outcome is None and request.binding.handler.kind == "worker":
            outcome = await until_written(
                lambda: records.act(lambda tx: enqueued(tx, request, message.attempt))
            )
        elif outcome is None:
            end = await self._handle(request, message.attempt)
            outcome = await until_written(lambda: _write(records, request, message, end))
        self._wakes.send(records.wakes)
        return outcome

    @activity.defn(name=RECORD_LOST_ATTEMPT.name)
    async def record_lost_attempt(self, message: LostAttempt) -> AttemptOutcome:
        with store_failures_told():
            request = await with_event(self._log, message.dispatch)
            records = self._records(request, message.dispatch_id, message.attempt)
            outcome = verdict(
                request.binding,
                message.attempt,
                message.status,
                error=message.error,
                error_class="unknown" if message.status == "failed" else None,
            ).model_copy(update={"remote_task": message.remote_task})
            ended = await records.end_lost(outcome)
        self._wakes.send(records.wakes)
        return ended

    @activity.defn(name=RECORD_CANCELLED.name)
    async def record_cancelled(self, message: CancelledDispatch) -> DispatchEnd:
        with store_failures_told():
            request = await with_event(self._log, message.dispatch)
            records = self._records(request, message.dispatch_id, message.attempts + 1)
            end = await records.cancel_dispatch()
        self._wakes.send(records.wakes)
        return end

    def _records(self, request: DispatchRequest, dispatch_id: str, attempt: int) -> AttemptLog:
        run_id = activity.info().workflow_run_id or ""
        return AttemptLog(
            self._log, request, dispatch_id=dispatch_id, run_id=run_id, attempt=attempt
        )

    def _tell_start(
        self, request: DispatchRequest, attempt: int, started_at_ms: int | None
    ) -> None:
        first = attempt == 1 and request.replay_of_event_id is None
        tell, event, binding = self._figures.on_start, request.event, request.binding
        if tell is None or started_at_ms is None or event is None or not first:
            return
        tell(
            StartedAttempt(
                trigger_id=binding.trigger_id,
                binding_key=binding.binding_key,
                provider=binding.provider,
                received_at=event.received_at,
                started_at_ms=started_at_ms,
            )
        )

    async def _handle(self, request: DispatchRequest, attempt: int) -> HandlerEnd:
        binding = request.binding
        if binding.handler.kind == "a2a":
            return await self._hop.send(request)
        try:
            handler = self._load_handler(binding.handler.uri)
        except HandlerLoadError as error:  # this worker's manifest is not the dispatch's
            return HandlerEnd("failed", error=describe(error), error_class="unknown")
        context = HandlerContext(
            event_id=request.event_id,
            trace_id=request.trace_id,
            trigger_id=binding.trigger_id,
            binding_key=binding.binding_key,
            attempt=attempt,
            max_attempts=binding.retry.max_attempts,
            tenant_id=request.tenant_id,
            deadline_ms=self._clock() + binding.timeout_ms,
        )
        event = request.event
        assert event is not None  # with_event put it there
        call = HandlerCall(handler, event, context, self._executor, interruption=interruption)
        return await call.run(binding.timeout_ms)


async def _started(records: AttemptLog) -> AttemptOutcome | None:
    try:
        return await records.start()
    except PermitsLostError:
        raise ApplicationError(
            "others hold the permits of this dispatch by now",
            type=PERMITS_LOST,
            category=ApplicationErrorCategory.BENIGN,
        ) from None


async def _write(
    records: AttemptLog, request: DispatchRequest, message: AttemptRequest, end: HandlerEnd
) -> AttemptOutcome:
    if end.result is None and end.error is None:
        outcome = outcome_of_end(request, message.attempt, end)
    else:  # may be large: the event loop must not stand still while it is looked through
        outcome = await asyncio.to_thread(outcome_of_end, request, message.attempt, end)
    if outcome.pending and outcome.remote_task is not None:
        await records.pend(outcome.remote_task)
        return outcome
    return await records.end(outcome)
