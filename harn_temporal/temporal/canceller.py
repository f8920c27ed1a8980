"""Cancels the workflow of a dispatch, where there is one under way."""

from __future__ import annotations

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from harn_temporal.consume_contracts import JobMoved
from harn_temporal.errors import TemporalUnavailableError
from harn_temporal.workflows.consume import ConsumeWorkflow
from harn_temporal.workflows.dispatch_page import HARN_BINDING, KEYWORD_LIMIT


async def cancel_dispatch(client: Client, workflow_id: str, binding_key: str) -> bool:
    """Whether a dispatch was told to end. One that does not run, or not yet, is left alone.

    A workflow's id does not say under which version of the binding it runs; where its search
    attributes name another one it is not meant. Raises TemporalUnavailableError.
    """
    handle = client.get_workflow_handle(workflow_id)
    try:
        found = await handle.describe()
        if found.status != WorkflowExecutionStatus.RUNNING:
            return False
        named = found.typed_search_attributes.get(HARN_BINDING)
        if named is not None and named != binding_key[:KEYWORD_LIMIT]:
            return False
        await handle.cancel()
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return False
        raise _unavailable(client, workflow_id, error) from error
    return True


async def cancel_inline_job(client: Client, consumer: str, claim_id: str) -> bool:
    """Whether the consumer with a workflow id was told to cancel the job of a claim.

    For a job whose steps run in its consumer's history. Raises TemporalUnavailableError.
    """
    handle = client.get_workflow_handle(consumer)
    try:
        await handle.signal(ConsumeWorkflow.cancel_job, JobMoved(claim_id=claim_id))
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return False
        raise _unavailable(client, consumer, error) from error
    return True


def _unavailable(client: Client, workflow_id: str, error: RPCError) -> TemporalUnavailableError:
    place = client.service_client.config.target_host
    return TemporalUnavailableError(
        f"the Temporal service at {place} does not cancel {workflow_id}: {error.message}"
    )
