"""An attempt that goes on as an agent's task: asked about until its outcome is written."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from harn_temporal.contracts import (
    AttemptOutcome,
    AttemptStatus,
    DispatchRequest,
    FollowedTask,
)
from harn_temporal.durations import format_duration
from harn_temporal.workflows.activity_types import CANCEL_A2A_TASK, POLL_A2A_TASK
from harn_temporal.workflows.attempt_fate import Ended, fate_of
from harn_temporal.workflows.attempt_steps import AttemptSteps
from harn_temporal.workflows.calls import (
    A_FEW_TIMES,
    RECORDING_TIMEOUT,
    UNTIL_RECORDED,
    call,
    cancel_requested,
    shielded,
)
from harn_temporal.workflows.dispatch_page import after
from harn_temporal.workflows.dispatch_progress import DispatchProgress
from harn_temporal.workflows.follow_pace import FollowPace
from harn_temporal.workflows.waits import Waits, waiting

POLL_TIMEOUT = timedelta(minutes=2)
"""Of one question to an agent: its own 30 s, and time for the store."""


class FollowSteps:
    """The task that `pending`, the outcome of an attempt, names."""

    def __init__(
        self,
        request: DispatchRequest,
        dispatch_id: str,
        pending: AttemptOutcome,
        progress: DispatchProgress,
        waits: Waits | None,
    ) -> None:
        task = pending.remote_task
        assert task is not None  # what is pending has one
        self._request = request
        self._dispatch_id = dispatch_id
        self._attempt = pending.attempt
        self._outcome = pending
        self._task = task
        self._progress = progress
        self._waits = waits

    async def run(self) -> AttemptOutcome:
        follow = self._request.binding.follow
        assert follow is not None  # only a binding that follows leaves an attempt pending
        pace = FollowPace(follow, now=workflow.now())
        with waiting(self._waits, self._outcome, None):
            self._progress.follows()
            try:
                while self._outcome.pending and not cancel_requested():
                    pause = pace.next_pause(workflow.now(), at_least_ms=self._outcome.retry_in_ms)
                    if pause is None:
                        limit = format_duration(follow.timeout_ms)
                        text = f"the agent's task did not end within {limit}"
                        return await self._give_up("timeout", text)
                    await self._ask_in(pause, pace)
            except (asyncio.CancelledError, ActivityError) as error:
                if not is_cancelled_exception(error):
                    raise
        if self._outcome.pending:
            return await self._give_up("cancelled", "cancelled")
        return self._outcome

    async def _ask_in(self, pause: timedelta, pace: FollowPace) -> None:
        self._progress.following(self._outcome, after(pause), pace.give_up)
        await workflow.sleep(pause, summary=f"ask about task {self._task.task_id[:100]}")
        self._outcome = await self._poll()
        self._task = self._outcome.remote_task or self._task

    async def _poll(self) -> AttemptOutcome:
        try:
            return await call(
                POLL_A2A_TASK,
                self._followed(),
                start_to_close=POLL_TIMEOUT,
                retry=UNTIL_RECORDED,
                heartbeat=timedelta(milliseconds=self._request.heartbeat_timeout_ms),
                summary=f"task of attempt {self._attempt}",
            )
        except ActivityError as error:
            fate = fate_of(error)
            if isinstance(fate, Ended):
                return fate.outcome
            raise

    async def _give_up(self, status: AttemptStatus, error: str) -> AttemptOutcome:
        """Have the agent cancel the task, if it will, and the attempt recorded."""
        self._progress.gives_up_task()
        try:
            await shielded(
                call(
                    CANCEL_A2A_TASK,
                    self._followed(),
                    start_to_close=RECORDING_TIMEOUT,
                    retry=A_FEW_TIMES,
                    summary="cancel the agent's task",
                )
            )
        except ActivityError:
            workflow.logger.warning("remote_cancel_failed", extra={"task_id": self._task.task_id})
        attempt = AttemptSteps(self._request, self._dispatch_id, self._attempt, self._progress)
        return await attempt.lost(status, error, self._task)

    def _followed(self) -> FollowedTask:
        """Without the event: a history that follows a task for long would be full of copies."""
        return FollowedTask(
            dispatch=self._request.model_copy(update={"event": None, "resume": None}),
            dispatch_id=self._dispatch_id,
            attempt=self._attempt,
            task=self._task,
        )
