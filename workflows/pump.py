from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

from harn_temporal.contracts import PumpRequest
from harn_temporal.workflows.activity_types import RUN_PUMP

RESTART_PAUSE = timedelta(seconds=1)
"""Between two executions of the pump. It stays the same: a pump that was moved from host to
host a hundred times is as urgent as a new one."""

BEYOND_LIFETIME = timedelta(minutes=10)


@workflow.defn(name="PumpWorkflow")
class PumpWorkflow:
    """The singleton that holds the pump of a package: Temporal elects its host and moves it."""

    @workflow.run
    async def run(self, request: PumpRequest) -> None:
        await workflow.execute_activity(
            RUN_PUMP.name,
            request,
            result_type=RUN_PUMP.output,
            task_queue=request.control_queue,
            start_to_close_timeout=timedelta(milliseconds=request.lifetime_ms) + BEYOND_LIFETIME,
            heartbeat_timeout=timedelta(milliseconds=request.heartbeat_timeout_ms),
            retry_policy=RetryPolicy(initial_interval=RESTART_PAUSE, backoff_coefficient=1),
            summary=f"pump of {request.package}"[:200],
        )
        workflow.continue_as_new(request)
