"""What all records of a dispatch share: headers, topics, and the first keys of their payloads."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from harn_temporal import action_graph, headers
from harn_temporal.action_graph import Json
from harn_temporal.contracts import DispatchRequest, DispatchStatus, ErrorClass
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.records import Append
from harn_temporal.events import TriggerEvent


def event_of(request: DispatchRequest) -> TriggerEvent:
    """The event of a request that carries it.

    A request without its event is a mistake of the caller (`event_address.with_event` gives
    one that has it), hence ValueError.
    """
    if request.event is None:
        raise ValueError(f"the request for event {request.event_id} does not carry the event")
    return request.event


def dispatch_headers(request: DispatchRequest, attempt: int | None = None) -> dict[str, str]:
    event = event_of(request)
    found = {
        "event_id": request.event_id,
        "trace_id": request.trace_id,
        "provider": event.provider,
        "kind": event.kind,
        "trigger_id": request.binding.trigger_id,
        "binding_key": request.binding.binding_key,
        "handler_kind": request.binding.handler.kind,
        "attempt": None if attempt is None else str(attempt),
        "tenant_id": request.tenant_id,
        "replay_of_event_id": request.replay_of_event_id,
    }
    return {name: value for name, value in found.items() if value is not None}


def dispatch_record(
    request: DispatchRequest,
    topic: str,
    kind: str,
    payload: Json,
    *,
    now_ms: int,
    attempt: int | None = None,
) -> Append:
    """A record under the tenant's own topic, where the event has a tenant."""
    return Append(
        topic=topics.tenant_topic(request.tenant_id, topic),
        kind=kind,
        payload=payload,
        headers=dispatch_headers(request, attempt),
        occurred_at_ms=now_ms,
    )


def lifecycle_record(request: DispatchRequest, kind: str, payload: Json, *, now_ms: int) -> Append:
    return dispatch_record(request, topics.TRIGGERS_LIFECYCLE, kind, payload, now_ms=now_ms)


def outbox_record(
    request: DispatchRequest,
    kind: str,
    payload: Json,
    *,
    now_ms: int,
    workflow_id: str,
    attempt: int | None = None,
    final: DispatchStatus | None = None,
    error_class: ErrorClass | None = None,
    more: Mapping[str, str] = MappingProxyType({}),
) -> Append:
    """An outbox record; with `final`, the one that ends the dispatch. `more` are headers too."""
    record = dispatch_record(
        request, topics.TRIGGER_OUTBOX, kind, payload, now_ms=now_ms, attempt=attempt
    )
    ours: dict[str, str] = {headers.WORKFLOW_ID: workflow_id}
    if final is not None:
        ours[headers.OUTCOME] = final
    if error_class is not None:
        ours[headers.ERROR_CLASS] = error_class
    return Append(
        topic=record.topic,
        kind=record.kind,
        payload=record.payload,
        headers={**record.headers, **ours, **more},
        occurred_at_ms=now_ms,
    )


def graph_record(
    request: DispatchRequest,
    part: tuple[list[Json], list[Json]],
    *,
    now_ms: int,
    context: Json | None = None,
) -> Append:
    """An update of the action graph, whose topic is everyone's."""
    nodes, edges = part
    return Append(
        topic=topics.ACTION_GRAPH,
        kind="action_graph_update",
        payload=action_graph.update(request, nodes=nodes, edges=edges, context=context),
        headers={
            "trace_id": request.trace_id,
            "event_id": request.event_id,
        },
        occurred_at_ms=now_ms,
    )


def trigger_graph_record(request: DispatchRequest, *, now_ms: int) -> Append:
    part = action_graph.trigger_part(request, event_of(request))
    return graph_record(request, part, now_ms=now_ms)


def lifecycle_payload(request: DispatchRequest, attempt: int, **found: Any) -> Json:
    """The keys of Dispatch… in `triggers.lifecycle`, with what the kind adds."""
    handler = request.binding.handler
    return {
        "event_id": request.event_id,
        "attempt": attempt,
        "handler_kind": handler.kind,
        "target_uri": handler.uri,
        **found,
        "replay_of_event_id": request.replay_of_event_id,
    }


def outbox_payload(request: DispatchRequest, attempt: int, **found: Any) -> Json:
    """The keys of dispatch_… in `trigger.outbox`, with what the kind adds."""
    binding = request.binding
    return {
        "event_id": request.event_id,
        "attempt": attempt,
        "trigger_id": binding.trigger_id,
        "binding_key": binding.binding_key,
        "handler_kind": binding.handler.kind,
        "target_uri": binding.handler.uri,
        **found,
        "replay_of_event_id": request.replay_of_event_id,
    }


def attempt_context(request: DispatchRequest, attempt: int, **found: Any) -> Json:
    """What the context of an attempt's graph updates says besides the binding and the event."""
    handler = request.binding.handler
    agent = {"target_agent": action_graph.target_agent(handler.uri)}
    return {
        "attempt": attempt,
        "handler_kind": handler.kind,
        "target_uri": handler.uri,
        **(agent if handler.kind == "a2a" else {}),
        **found,
    }
