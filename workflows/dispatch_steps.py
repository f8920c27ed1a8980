"""The steps of a dispatch: the predicate, then attempts until one of them is the last."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, FailureError, is_cancelled_exception

from harn_temporal.clock import rfc3339
from harn_temporal.contracts import (
    AttemptOutcome,
    AttemptRequest,
    AttemptStatus,
    CancelledDispatch,
    CancelledEnd,
    DispatchOutcome,
    DispatchPhase,
    DispatchRequest,
    DispatchState,
    DispatchStatus,
    EventAddress,
    FollowedTask,
    LostAttempt,
    PredicateRequest,
    PredicateVerdict,
    RemoteTask,
)
from harn_temporal.durations import format_duration
from harn_temporal.gate_contracts import GateAnswer, GateRequest
from harn_temporal.gates.decisions import Skip, Wait
from harn_temporal.workflows.activity_types import (
    CANCEL_A2A_TASK,
    EVALUATE_WHEN,
    PASS_GATES,
    POLL_A2A_TASK,
    RECORD_CANCELLED,
    RECORD_LOST_ATTEMPT,
    RUN_ATTEMPT,
    ActivityType,
)
from harn_temporal.workflows.attempt_fate import (
    CutShort,
    Ended,
    Lost,
    PermitsLost,
    StoreDown,
    fate_of,
)
from harn_temporal.workflows.dispatch_page import DispatchPage, after, retry_summary
from harn_temporal.workflows.follow_pace import FollowPace
from harn_temporal.workflows.gate_steps import GateSteps

T = TypeVar("T")
InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")

FIRST_STORE_PAUSE = timedelta(seconds=1)
LONGEST_STORE_PAUSE = timedelta(seconds=30)

STORE_ALLOWANCE = timedelta(hours=1)
"""Beyond its handler's timeout an attempt may wait so long for the store to take its outcome."""

PREDICATE_TIMEOUT = timedelta(minutes=2)
"""Of one execution of evaluate_when: the predicate's own 30 s, and time for the store."""

RECORDING_TIMEOUT = timedelta(minutes=1)
LOCAL_TIMEOUT = timedelta(seconds=5)

UNTIL_RECORDED = RetryPolicy(
    initial_interval=FIRST_STORE_PAUSE, backoff_coefficient=2, maximum_interval=LONGEST_STORE_PAUSE
)
"""For activities that only append or evaluate: tried again until the store takes it."""

POLL_TIMEOUT = timedelta(minutes=2)
"""Of one question to an agent: its own 30 s, and time for the store."""

A_FEW_TIMES = RetryPolicy(maximum_attempts=5, maximum_interval=timedelta(seconds=30))
"""For asking an agent to cancel a task: it may be away just now, and that is its affair."""

ONCE = RetryPolicy(maximum_attempts=1)
"""For an attempt, whose failures are decided on here, in the open, and for a first try."""


class Waits(Protocol):
    """Who is told that a dispatch waits and needs no slot meanwhile."""

    def begins(self, outcome: AttemptOutcome | None, delay: timedelta | None) -> None:
        """After an attempt: for a retry in `delay`, or for a task whose end is not known (None).

        Without an outcome: at a gate, before an attempt.

        May raise, to take the dispatch elsewhere; that leaves `run` as it is.
        """

    def ends(self) -> None: ...


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
        self._page = page
        self._waits = waits
        self._heartbeat_timeout = timedelta(milliseconds=request.heartbeat_timeout_ms)
        self._phase: DispatchPhase = "attempt" if request.binding.when is None else "predicate"
        self._attempt = 0 if request.resume is None else request.resume.attempt
        self._until: datetime | None = None
        self._last_error: str | None = None
        self._outcome: DispatchOutcome | None = None
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
        return DispatchState(
            phase=self._phase,
            attempt=self._attempt,
            max_attempts=self._request.binding.retry.max_attempts,
            until=None if self._until is None else rfc3339(int(self._until.timestamp() * 1000)),
            last_error=self._last_error,
            outcome=self._outcome,
        )

    async def run(self) -> DispatchOutcome:
        ended = 0  # attempts whose outcome is written
        try:
            outcome = self._request.resume
            refused = await self._refusal()
            if refused is not None:
                return refused
            while outcome is not None or not _cancel_requested():
                if outcome is None:
                    found = await self._next(ended)
                    if isinstance(found, DispatchOutcome):
                        return found
                    outcome = found
                if outcome.pending:
                    outcome = await self._follow(outcome)
                ended = outcome.attempt
                self._last_error = outcome.error
                if outcome.final is not None:
                    return self._end(
                        outcome.final,
                        attempts=ended,
                        result=outcome.result,
                        result_address=outcome.result_address,
                        error=outcome.error,
                    )
                self._gates.gave_back(outcome)
                if not _cancel_requested():
                    await self._retry_wait(outcome)
                outcome = None
        except (asyncio.CancelledError, ActivityError) as error:
            if not is_cancelled_exception(error):
                raise
        return await self._cancel(ended)

    async def _refusal(self) -> DispatchOutcome | None:
        """The end of a dispatch whose predicate says no, or that was cancelled before it."""
        if self._request.resume is not None or self._request.binding.when is None:
            return None
        verdict = await self._predicate()
        if verdict.cancelled:
            return await self._cancel(0)
        return None if verdict.passed else self._end("skipped", attempts=0, error=verdict.error)

    async def _predicate(self) -> PredicateVerdict:
        self._phase = "predicate"
        if self._page:
            self._page.predicate()
        return await self._call(
            EVALUATE_WHEN,
            PredicateRequest(dispatch=self._request, dispatch_id=self._dispatch_id),
            start_to_close=PREDICATE_TIMEOUT,
            retry=UNTIL_RECORDED,
            heartbeat=self._heartbeat_timeout,
            summary="predicate `when`",
        )

    async def _next(self, ended: int) -> AttemptOutcome | DispatchOutcome:
        """The next attempt's outcome, or the end that a gate made instead of it."""
        while True:
            held_back = await self._pass_gates(ended)
            if held_back is not None:
                return held_back
            outcome = await self._run_attempt(ended + 1)
            if outcome is not None:
                return outcome
            self._gates.lost()

    async def _pass_gates(self, attempts: int) -> DispatchOutcome | None:
        """The end of a dispatch that a gate holds back for good; None where it may go on."""
        if self._gates.passed:
            return None
        try:
            refusal = await self._gates.pass_all(
                self._ask_gates, self._gate_wait_begins, self._gate_wait, attempts
            )
        finally:
            waited, self._waits_at_gate = self._waits_at_gate, False
            if waited and self._waits:
                self._waits.ends()
        if isinstance(refusal, Skip):
            return self._end("skipped", attempts=attempts, error=_reason(refusal))
        if refusal is not None:
            return self._end_as(refusal)
        if waited and self._page:
            self._page.passed_gates()
        if self._gates.batch is not None:
            self._request = self._request.model_copy(update={"batch": self._gates.batch})
        return None

    def _gate_wait_begins(self, delay: timedelta | None) -> None:
        if self._waits:
            self._waits.begins(None, delay)

    def _gate_wait(self, wait: Wait, until: datetime) -> None:
        self._phase, self._until = "gate_wait", until
        if self._page:
            self._page.gate_wait(wait, until, first=not self._waits_at_gate)
        self._waits_at_gate = True

    async def _ask_gates(self, message: GateRequest) -> GateAnswer:
        return await self._record(PASS_GATES, message, "gates")

    async def _run_attempt(self, attempt: int) -> AttemptOutcome | None:
        """Run one attempt until its outcome is written, however often its worker or store goes.

        None where it must not begin, since others hold its permits by now.
        """
        pause = FIRST_STORE_PAUSE
        while True:
            self._attempt = attempt
            self._phase, self._until = "attempt", None
            if self._page:
                self._page.attempt(attempt)
            try:
                return await self._call(
                    RUN_ATTEMPT,
                    AttemptRequest(
                        dispatch=self._request, dispatch_id=self._dispatch_id, attempt=attempt
                    ),
                    start_to_close=timedelta(milliseconds=self._request.binding.timeout_ms)
                    + STORE_ALLOWANCE,
                    retry=ONCE,
                    heartbeat=self._heartbeat_timeout,
                    summary=f"attempt {attempt} of {self._request.binding.retry.max_attempts}",
                )
            except ActivityError as error:
                fate = fate_of(error)
            if isinstance(fate, (Ended, PermitsLost)):
                return fate.outcome
            if _cancel_requested():
                return await self._record_lost(attempt, "cancelled", "cancelled")
            match fate:
                case CutShort():
                    continue
                case StoreDown():
                    try:
                        await self._store_wait(pause)
                    except asyncio.CancelledError:
                        return await self._record_lost(attempt, "cancelled", "cancelled")
                    pause = min(pause * 2, LONGEST_STORE_PAUSE)
                case Lost(status, text):
                    return await self._record_lost(attempt, status, text)

    async def _follow(self, outcome: AttemptOutcome) -> AttemptOutcome:
        """Go on asking about the task that an attempt has become, until its outcome is written."""
        attempt, task, follow = outcome.attempt, outcome.remote_task, self._request.binding.follow
        assert task is not None  # what is pending has one,
        assert follow is not None  # and only a binding that follows leaves it pending
        pace = FollowPace(follow, now=workflow.now())
        if self._waits:
            self._waits.begins(outcome, None)
        if self._page:
            self._page.follows()
        try:
            while outcome.pending and not _cancel_requested():
                pause = pace.next_pause(workflow.now(), at_least_ms=outcome.retry_in_ms)
                if pause is None:
                    limit = format_duration(follow.timeout_ms)
                    text = f"the agent's task did not end within {limit}"
                    return await self._give_up(attempt, task, "timeout", text)
                self._phase, self._until = "following", after(pause)
                self._last_error = outcome.error
                if self._page:
                    self._page.following(outcome, self._until, pace.give_up)
                await workflow.sleep(pause, summary=f"ask about task {task.task_id[:100]}")
                outcome = await self._poll(attempt, task)
                task = outcome.remote_task or task
        except (asyncio.CancelledError, ActivityError) as error:
            if not is_cancelled_exception(error):
                raise
        finally:
            if self._waits:
                self._waits.ends()
        if outcome.pending:
            return await self._give_up(attempt, task, "cancelled", "cancelled")
        return outcome

    async def _poll(self, attempt: int, task: RemoteTask) -> AttemptOutcome:
        try:
            return await self._call(
                POLL_A2A_TASK,
                self._followed(attempt, task),
                start_to_close=POLL_TIMEOUT,
                retry=UNTIL_RECORDED,
                heartbeat=self._heartbeat_timeout,
                summary=f"task of attempt {attempt}",
            )
        except ActivityError as error:
            fate = fate_of(error)
            if isinstance(fate, Ended):
                return fate.outcome
            raise

    async def _give_up(
        self, attempt: int, task: RemoteTask, status: AttemptStatus, error: str
    ) -> AttemptOutcome:
        """Have the agent cancel the task, if it will, and the attempt recorded."""
        if self._page:
            self._page.cancelling()
        try:
            await _shielded(
                self._call(
                    CANCEL_A2A_TASK,
                    self._followed(attempt, task),
                    start_to_close=RECORDING_TIMEOUT,
                    retry=A_FEW_TIMES,
                    summary="cancel the agent's task",
                )
            )
        except ActivityError:
            workflow.logger.warning("remote_cancel_failed", extra={"task_id": task.task_id})
        return await self._record_lost(attempt, status, error, task)

    def _followed(self, attempt: int, task: RemoteTask) -> FollowedTask:
        """Without the event: a history that follows a task for long would be full of copies."""
        return FollowedTask(
            dispatch=self._request.model_copy(update={"event": None, "resume": None}),
            dispatch_id=self._dispatch_id,
            attempt=attempt,
            task=task,
        )

    async def _retry_wait(self, outcome: AttemptOutcome) -> None:
        delay_ms = outcome.retry_in_ms or 0
        if delay_ms == 0:
            return
        delay = timedelta(milliseconds=delay_ms)
        if self._waits:
            self._waits.begins(outcome, delay)
        self._phase, self._until = "retry_wait", after(delay)
        if self._page:
            self._page.retry_wait(outcome.attempt, delay_ms, self._until, outcome.error)
        try:
            await workflow.sleep(
                delay, summary=retry_summary(delay_ms, self._request.binding.retry.schedule.backoff)
            )
        finally:
            if self._waits:
                self._waits.ends()

    async def _store_wait(self, pause: timedelta) -> None:
        self._phase, self._until = "store_wait", after(pause)
        if self._page:
            self._page.store_wait(self._until)
        await workflow.sleep(pause, summary="the EventLog cannot be reached")

    async def _record_lost(
        self, attempt: int, status: AttemptStatus, error: str, task: RemoteTask | None = None
    ) -> AttemptOutcome:
        message = LostAttempt(
            dispatch=self._request,
            dispatch_id=self._dispatch_id,
            attempt=attempt,
            status=status,
            error=error,
            remote_task=task,
        )
        return await self._record(
            RECORD_LOST_ATTEMPT, message, f"record attempt {attempt} as {status}"
        )

    async def _cancel(self, attempts: int) -> DispatchOutcome:
        self._phase, self._until = "cancelling", None
        if self._page:
            self._page.cancelling()
        message = CancelledDispatch(
            dispatch=self._request, dispatch_id=self._dispatch_id, attempts=attempts
        )
        return self._end_as(
            await self._record(RECORD_CANCELLED, message, "record the cancellation")
        )

    def _end_as(self, end: CancelledEnd) -> DispatchOutcome:
        return self._end(
            end.status,
            attempts=end.attempts,
            result=end.result,
            result_address=end.result_address,
            error=end.error,
        )

    async def _record(
        self, activity: ActivityType[InputT, OutputT], message: InputT, summary: str
    ) -> OutputT:
        """Have something recorded, cancelled or not.

        First as a local activity, which does not wait until a handler gives up its slot; where
        the store is away as a normal one, which waits for as long as that takes.
        """
        try:
            output: OutputT = await _shielded(
                workflow.execute_local_activity(
                    activity.name,
                    message,
                    result_type=activity.output,
                    schedule_to_close_timeout=LOCAL_TIMEOUT,
                    retry_policy=ONCE,
                )
            )
        except FailureError:  # of a local activity it is the bare error of its last try
            return await _shielded(
                self._call(
                    activity,
                    message,
                    start_to_close=RECORDING_TIMEOUT,
                    retry=UNTIL_RECORDED,
                    summary=summary,
                )
            )
        return output

    def _end(
        self,
        status: DispatchStatus,
        *,
        attempts: int,
        result: Any = None,
        result_address: EventAddress | None = None,
        error: str | None = None,
    ) -> DispatchOutcome:
        binding = self._request.binding
        self._outcome = DispatchOutcome(
            trigger_id=binding.trigger_id,
            binding_key=binding.binding_key,
            event_id=self._request.event_id,
            attempt_count=attempts,
            status=status,
            handler_kind=binding.handler.kind,
            target_uri=binding.handler.uri,
            replay_of_event_id=self._request.replay_of_event_id,
            result=result,
            result_address=result_address,
            error=error,
        )
        self._phase, self._until, self._last_error = "ended", None, error
        if self._page:
            self._page.ended(status, attempts, error)
        return self._outcome

    async def _call(
        self,
        activity: ActivityType[InputT, OutputT],
        message: InputT,
        *,
        start_to_close: timedelta,
        retry: RetryPolicy,
        summary: str,
        heartbeat: timedelta | None = None,
    ) -> OutputT:
        """Time on the queue is not limited: without a worker a dispatch waits for one.

        A cancelled activity is waited for, since it may still write how it ended.
        """
        output: OutputT = await workflow.execute_activity(
            activity.name,
            message,
            result_type=activity.output,
            start_to_close_timeout=start_to_close,
            heartbeat_timeout=heartbeat,
            retry_policy=retry,
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            summary=summary,
        )
        return output


def _reason(skip: Skip) -> str:
    """For people; the record has all of it."""
    reason = skip.detail.get("reason")
    where = skip.detail.get("gate")
    return f"held back by {where}" + (f": {reason}" if reason else "") if where else str(reason)


def _cancel_requested() -> bool:
    """Also true where an activity that ended in the same moment swallowed the cancellation."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _shielded(work: Coroutine[Any, Any, T]) -> T:
    return await asyncio.shield(asyncio.ensure_future(work))
