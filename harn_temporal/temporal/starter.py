"""Starts the workflow of a dispatch, once for its event and binding, for ever."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass

from temporalio.client import Client, WorkflowHandle
from temporalio.common import (
    Priority,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from harn_temporal.canonical import encode
from harn_temporal.contracts import INLINE_EVENT_LIMIT, DispatchOutcome, DispatchRequest
from harn_temporal.errors import DispatchRefusedError, TemporalUnavailableError
from harn_temporal.eventlog.inbox import StoredOutcome
from harn_temporal.eventlog.log import EventLog
from harn_temporal.naming import dispatch_workflow_id, shortened, task_queue
from harn_temporal.workflows.dispatch import DispatchWorkflow
from harn_temporal.workflows.dispatch_page import priority_key, search_attributes

logger = logging.getLogger("harn_temporal.temporal")

DispatchHandle = WorkflowHandle[DispatchWorkflow, DispatchOutcome]

FAIRNESS_KEY_LIMIT = 64
"""Bytes; with a longer one Temporal refuses the start. A hash in hexadecimal has as many."""

SUMMARY_LIMIT = 200
"""Characters; Temporal takes 400 bytes."""


@dataclass(frozen=True)
class Started:
    handle: DispatchHandle


@dataclass(frozen=True)
class AlreadyStarted:
    """Temporal knows the workflow, open or closed."""

    handle: DispatchHandle


@dataclass(frozen=True)
class AlreadyEnded:
    """The log holds its outcome, whether or not Temporal still remembers the workflow."""

    workflow_id: str
    outcome: StoredOutcome


async def start_dispatch(
    client: Client,
    log: EventLog,
    request: DispatchRequest,
    *,
    eager: bool = False,
) -> Started | AlreadyStarted | AlreadyEnded:
    """Start the dispatch unless it was started before.

    `eager` saves a round trip where a worker of the task queue runs on this very client. Raises
    TemporalUnavailableError or StoreUnavailableError, after which it may be called again, and
    DispatchRefusedError where that would not help.
    """
    workflow_id = _workflow_id(request)
    stored = await log.query(lambda reader: reader.inbox.outcome(workflow_id))
    if stored is not None:
        return AlreadyEnded(workflow_id, stored)
    return await start_unended(client, request, eager=eager)


async def start_unended(
    client: Client, request: DispatchRequest, *, eager: bool = False
) -> Started | AlreadyStarted:
    """As `start_dispatch`, for who has found no outcome in the log already."""
    request = _within_limits(request)
    try:
        return await _start(client, request, eager=eager)
    except DispatchRefusedError as error:
        if not request.search_attributes:
            raise
        reason = error
    # A namespace may have lost the attributes, or never have had them: they are not essential.
    plain = request.model_copy(update={"search_attributes": False})
    started = await _start(client, plain, eager=eager)
    logger.warning(
        "search_attributes_dropped",
        extra={"workflow_id": started.handle.id, "error": str(reason)},
    )
    return started


def _workflow_id(request: DispatchRequest) -> str:
    binding = request.binding
    return dispatch_workflow_id(
        binding.package, binding.trigger_id, request.event_id, request.replay
    )


def _within_limits(request: DispatchRequest) -> DispatchRequest:
    """A large event stays in the log: Temporal refuses inputs above 2 MiB."""
    if request.event is None or len(encode(request.event.to_json())) <= INLINE_EVENT_LIMIT:
        return request
    return request.model_copy(update={"event": None})


async def _start(
    client: Client, request: DispatchRequest, *, eager: bool
) -> Started | AlreadyStarted:
    workflow_id = _workflow_id(request)
    try:
        handle = await client.start_workflow(
            DispatchWorkflow.run,
            request,
            id=workflow_id,
            task_queue=task_queue(request.store_id, request.binding.package),
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            search_attributes=_search_attributes(request),
            static_summary=_summary(request),
            static_details=_details(request),
            request_eager_start=eager,
            priority=_priority(request),
        )
    except WorkflowAlreadyStartedError:
        return AlreadyStarted(client.get_workflow_handle_for(DispatchWorkflow.run, workflow_id))
    except RPCError as error:
        place = client.service_client.config.target_host
        if error.status == RPCStatusCode.INVALID_ARGUMENT:
            raise DispatchRefusedError(
                f"the Temporal service at {place} refuses {workflow_id}: {error.message}"
            ) from error
        raise TemporalUnavailableError(
            f"the Temporal service at {place} does not take {workflow_id}: {error.message}"
        ) from error
    return Started(handle)


def _priority(request: DispatchRequest) -> Priority:
    tenant = request.tenant_id
    if tenant is not None and len(tenant.encode()) > FAIRNESS_KEY_LIMIT:
        tenant = hashlib.sha256(tenant.encode()).hexdigest()
    return priority_key(request.binding.priority, tenant)


def _search_attributes(request: DispatchRequest) -> TypedSearchAttributes:
    if not request.search_attributes:
        return TypedSearchAttributes.empty
    return TypedSearchAttributes(search_attributes(request))


def _summary(request: DispatchRequest) -> str:
    return shortened(f"{request.binding.binding_key}: {request.binding.handler.uri}", SUMMARY_LIMIT)


def _details(request: DispatchRequest) -> str:
    binding = request.binding
    lines = {
        "Trigger": binding.binding_key,
        "Provider": binding.provider,
        "Handler": binding.handler.uri,
        "Event": request.event_id,
        "Trace": request.trace_id,
        "Tenant": request.tenant_id,
        "Envelope": f"{request.address.topic} {request.address.event_id}",
        "Replay of": request.replay_of_event_id,
        "Retries": f"{binding.retry.schedule.backoff}, {binding.retry.max_attempts} attempts",
    }
    return "\n".join(f"- {name}: `{value}`" for name, value in lines.items() if value is not None)
