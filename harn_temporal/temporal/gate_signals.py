"""Signals dispatches that wait at a gate."""

from __future__ import annotations

from datetime import timedelta

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from harn_temporal.errors import TemporalUnavailableError
from harn_temporal.gate_contracts import ASK_GATES_AGAIN

TIMEOUT = timedelta(seconds=10)


async def signal_waiter(client: Client, workflow_id: str) -> None:
    """Have a dispatch ask its gates again. One that is not there, or has ended, is left alone.

    Raises TemporalUnavailableError.
    """
    try:
        await client.get_workflow_handle(workflow_id).signal(ASK_GATES_AGAIN, rpc_timeout=TIMEOUT)
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return
        place = client.service_client.config.target_host
        raise TemporalUnavailableError(
            f"the Temporal service at {place} does not signal {workflow_id}: {error.message}"
        ) from error
