"""One attempt of a dispatch, until its outcome is written."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

from harn_temporal.contracts import (
    AttemptOutcome,
    AttemptRequest,
    AttemptStatus,
    DispatchRequest,
    LostAttempt,
    RemoteTask,
)
from harn_temporal.workflows.activity_types import RECORD_LOST_ATTEMPT, RUN_ATTEMPT
from harn_temporal.workflows.attempt_fate import (
    CutShort,
    Ended,
    Lost,
    PermitsLost,
    StoreDown,
    fate_of,
)
from harn_temporal.workflows.calls import (
    FIRST_STORE_PAUSE,
    LONGEST_STORE_PAUSE,
    ONCE,
    call,
    cancel_requested,
    record,
)
from harn_temporal.workflows.dispatch_page import after
from harn_temporal.workflows.dispatch_progress import DispatchProgress

STORE_ALLOWANCE = timedelta(hours=1)
"""Beyond its handler's timeout an attempt may wait so long for the store to take its outcome."""


class AttemptSteps:
    def __init__(
        self, request: DispatchRequest, dispatch_id: str, attempt: int, progress: DispatchProgress
    ) -> None:
        self._request = request
        self._dispatch_id = dispatch_id
        self._attempt = attempt
        self._progress = progress

    async def run(self) -> AttemptOutcome | None:
        """Run it until its outcome is written, however often its worker or the store goes.

        None where it must not begin, since others hold its permits by now.
        """
        pause = FIRST_STORE_PAUSE
        while True:
            self._progress.attempt(self._attempt)
            try:
                return await self._execute()
            except ActivityError as error:
                fate = fate_of(error)
            if isinstance(fate, (Ended, PermitsLost)):
                return fate.outcome
            if cancel_requested():
                return await self.lost("cancelled", "cancelled")
            match fate:
                case CutShort():
                    continue
                case StoreDown():
                    try:
                        await self._store_wait(pause)
                    except asyncio.CancelledError:
                        return await self.lost("cancelled", "cancelled")
                    pause = min(pause * 2, LONGEST_STORE_PAUSE)
                case Lost(status, text):
                    return await self.lost(status, text)

    async def lost(
        self, status: AttemptStatus, error: str, task: RemoteTask | None = None
    ) -> AttemptOutcome:
        """Have it recorded how the attempt ended, which nobody else does."""
        message = LostAttempt(
            dispatch=self._request,
            dispatch_id=self._dispatch_id,
            attempt=self._attempt,
            status=status,
            error=error,
            remote_task=task,
        )
        return await record(
            RECORD_LOST_ATTEMPT, message, f"record attempt {self._attempt} as {status}"
        )

    async def _execute(self) -> AttemptOutcome:
        binding = self._request.binding
        return await call(
            RUN_ATTEMPT,
            AttemptRequest(
                dispatch=self._request, dispatch_id=self._dispatch_id, attempt=self._attempt
            ),
            start_to_close=timedelta(milliseconds=binding.timeout_ms) + STORE_ALLOWANCE,
            retry=ONCE,
            heartbeat=timedelta(milliseconds=self._request.heartbeat_timeout_ms),
            summary=f"attempt {self._attempt} of {binding.retry.max_attempts}",
        )

    async def _store_wait(self, pause: timedelta) -> None:
        self._progress.store_wait(after(pause))
        await workflow.sleep(pause, summary="the EventLog cannot be reached")
