"""What a dispatch is measured against: a workflow with one activity, as one writes it by hand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.common import RetryPolicy


@activity.defn
async def do_nothing(event: dict[str, Any]) -> None:
    """The handler: it takes the event and does nothing."""
    activity.logger.debug("%s", event["id"])


@workflow.defn
class RawWorkflow:
    @workflow.run
    async def run(self, event: dict[str, Any]) -> None:
        await workflow.execute_activity(
            do_nothing,
            event,
            start_to_close_timeout=timedelta(minutes=10),
            retry_policy=RetryPolicy(maximum_attempts=7),
        )
