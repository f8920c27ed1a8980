"""Asks Temporal about the life of a workflow."""

from __future__ import annotations

from datetime import timedelta

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from harn_temporal.activities.sweep import Life
from harn_temporal.errors import TemporalUnavailableError

TIMEOUT = timedelta(seconds=10)

_OPEN = frozenset({WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.CONTINUED_AS_NEW})


async def describe_life(client: Client, workflow_id: str) -> Life:
    """Raises TemporalUnavailableError where the service does not say."""
    try:
        found = await client.get_workflow_handle(workflow_id).describe(rpc_timeout=TIMEOUT)
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return "unknown"
        place = client.service_client.config.target_host
        raise TemporalUnavailableError(
            f"the Temporal service at {place} does not say what became of {workflow_id}: "
            f"{error.message}"
        ) from error
    # One that waits for its execution to begin has no status yet.
    return "open" if found.status is None or found.status in _OPEN else "closed"
