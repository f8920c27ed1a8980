"""The activities that follow the task of an A2A agent, one question at a time."""

from __future__ import annotations

import logging

from temporalio import activity
from temporalio.exceptions import ApplicationError

from harn_temporal.a2a.failures import A2aError
from harn_temporal.activities.a2a_hop import AgentHop
from harn_temporal.activities.attempt_end import outcome_of_end, told
from harn_temporal.activities.attempt_log import AttemptLog
from harn_temporal.activities.gate_wakes import Wakes, no_signal
from harn_temporal.activities.heartbeats import beating
from harn_temporal.activities.store_access import store_failures_told, until_written
from harn_temporal.contracts import AttemptOutcome, FollowedTask
from harn_temporal.event_address import with_event
from harn_temporal.eventlog.log import EventLog
from harn_temporal.workflows.activity_types import (
    AGENT_UNAVAILABLE,
    CANCEL_A2A_TASK,
    POLL_A2A_TASK,
)

logger = logging.getLogger("harn_temporal.activities")


class A2aTaskActivities:
    def __init__(self, log: EventLog, hop: AgentHop, wakes: Wakes | None = None) -> None:
        self._log = log
        self._wakes = wakes or Wakes(no_signal)
        self._hop = hop

    @activity.defn(name=POLL_A2A_TASK.name)
    async def poll_a2a_task(self, message: FollowedTask) -> AttemptOutcome:
        with beating():
            with store_failures_told():
                request = await with_event(self._log, message.dispatch)
            end = await self._hop.ask(request, message.task)
            outcome = outcome_of_end(request, message.attempt, end)
            if not outcome.pending:
                ended = outcome
                records = AttemptLog(
                    self._log,
                    request,
                    dispatch_id=message.dispatch_id,
                    run_id=activity.info().workflow_run_id or "",
                    attempt=message.attempt,
                )
                outcome = await until_written(lambda: records.end(ended))
                self._wakes.send(records.wakes)
        return told(request, outcome)

    @activity.defn(name=CANCEL_A2A_TASK.name)
    async def cancel_a2a_task(self, message: FollowedTask) -> None:
        """Raises AGENT_UNAVAILABLE where another try may help; a refusal is logged and final."""
        with beating():
            try:
                await self._hop.cancel(message.dispatch, message.task)
            except A2aError as error:
                if error.says_nothing_of_the_task:
                    raise ApplicationError(str(error), type=AGENT_UNAVAILABLE) from None
                logger.warning(
                    "remote_cancel_refused",
                    extra={
                        "event_id": message.dispatch.event_id,
                        "task_id": message.task.task_id,
                        "error": str(error),
                    },
                )
