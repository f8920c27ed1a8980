"""The action graph of an event: what Harn's portal draws, one update for each thing that happens.

A node that appears again under its id replaces what was known of it. Everything here is a pure
function from a request to JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from harn_temporal.contracts import AttemptOutcome, AttemptStatus, DispatchRequest, RemoteTask
from harn_temporal.events import TriggerEvent

SCHEMA_VERSION = 1

NodeKind = Literal["trigger", "predicate", "dispatch", "a2a_hop", "worker_enqueue", "retry", "dlq"]
EdgeKind = Literal[
    "trigger_dispatch", "a2a_dispatch", "predicate_gate", "retry", "dlq_move", "replay_chain"
]
Json = dict[str, Any]

_ENDED: dict[AttemptStatus, str] = {
    "success": "completed",
    "waiting": "waiting",
    "cancelled": "cancelled",
}
_NODE_KINDS: dict[str, NodeKind] = {
    "local": "dispatch",
    "a2a": "a2a_hop",
    "worker": "worker_enqueue",
}


def update(
    request: DispatchRequest,
    *,
    nodes: Sequence[Json],
    edges: Sequence[Json] = (),
    context: Mapping[str, Any] | None = None,
) -> Json:
    """The payload of an `action_graph_update`. `context` goes beside what every context has."""
    return {
        "source": "dispatcher",
        "trace_id": request.trace_id,
        "event_id": request.event_id,
        "observability": {
            "schema_version": SCHEMA_VERSION,
            "action_graph_nodes": list(nodes),
            "action_graph_edges": list(edges),
        },
        "context": {
            "source": "dispatcher",
            "trigger_id": request.binding.trigger_id,
            "binding_key": request.binding.binding_key,
            "event_id": request.event_id,
            **(context or {}),
            "replay_of_event_id": request.replay_of_event_id,
        },
    }


def trigger_id_of(event_id: str) -> str:
    return f"trigger:{event_id}"


def predicate_id(request: DispatchRequest) -> str:
    return f"predicate:{request.binding.binding_key}:{request.event_id}"


def attempt_id(request: DispatchRequest, attempt: int) -> str:
    prefix = "a2a" if request.binding.handler.kind == "a2a" else "dispatch"
    return f"{prefix}:{request.binding.binding_key}:{request.event_id}:{attempt}"


def retry_id(request: DispatchRequest, failed_attempt: int) -> str:
    return f"retry:{request.binding.binding_key}:{request.event_id}:{failed_attempt}"


def dlq_id(request: DispatchRequest) -> str:
    return f"dlq:{request.binding.binding_key}:{request.event_id}"


def trigger_part(request: DispatchRequest, event: TriggerEvent) -> tuple[list[Json], list[Json]]:
    """The trigger node; for a replay also the node of the original event and the edge from it."""
    label = f"{event.provider}:{event.kind}"
    metadata = {
        "provider": event.provider,
        "event_kind": event.kind,
        "dedupe_key": event.dedupe_key,
        "signature_status": event.signature_status.state,
    }
    own = _node(
        request,
        trigger_id_of(request.event_id),
        label=label,
        kind="trigger",
        status="received",
        outcome="received",
        metadata=metadata,
    )
    original = request.replay_of_event_id
    if original is None:
        return [own], []
    replayed = _node(
        request,
        trigger_id_of(original),
        label=f"{label} (original {original})",
        kind="trigger",
        status="historical",
        outcome="replayed_from",
        metadata=metadata,
    )
    edge = _edge(replayed["id"], own["id"], "replay_chain", "replay chain")
    return [replayed, own], [edge]


def predicate_part(
    request: DispatchRequest, source: str, *, passed: bool, reason: str | None, latency_ms: int
) -> tuple[list[Json], list[Json]]:
    """The predicate node and the edge from the trigger node to it. `source` is the `when`."""
    node = _node(
        request,
        predicate_id(request),
        label=source,
        kind="predicate",
        status="completed",
        outcome="true" if passed else "false",
        metadata={
            "trigger_id": request.binding.trigger_id,
            "event_id": request.event_id,
            "predicate": source,
            "result": passed,
            "reason": reason,
            "latency_ms": latency_ms,
        },
    )
    return [node], [_edge(trigger_id_of(request.event_id), node["id"], "trigger_dispatch")]


def running_part(request: DispatchRequest, attempt: int) -> tuple[list[Json], list[Json]]:
    """An attempt's node, and the edge from what led to it: trigger, predicate or retry."""
    node = _attempt_node(request, attempt, status="running", outcome=f"attempt_{attempt}")
    return [node], [_entry_edge(request, attempt)]


def pending_part(request: DispatchRequest, attempt: int, task: RemoteTask) -> list[Json]:
    """A hop's node once more, while the agent works on its task."""
    return [
        _attempt_node(
            request, attempt, status="running", outcome="pending", extra=_task_metadata(task)
        )
    ]


def ended_part(request: DispatchRequest, outcome: AttemptOutcome) -> list[Json]:
    """An attempt's node once more, as it ended."""
    extra: Json = {}
    label: str = outcome.status
    if outcome.status == "success":
        label, extra = _success(request, outcome.result)
    else:
        extra["error"] = outcome.error
    if outcome.remote_task is not None:
        extra |= _task_metadata(outcome.remote_task)
    return [
        _attempt_node(
            request,
            outcome.attempt,
            status=_ENDED.get(outcome.status, "failed"),
            outcome=label,
            extra=extra,
        )
    ]


def retry_part(
    request: DispatchRequest, failed_attempt: int, delay_ms: int, error: str | None
) -> tuple[list[Json], list[Json]]:
    """The retry node, named after the attempt that failed, and the edge from that attempt."""
    following = failed_attempt + 1
    node = _node(
        request,
        retry_id(request, failed_attempt),
        label=f"retry in {delay_ms}ms",
        kind="retry",
        status="scheduled",
        outcome=f"attempt_{following}",
        metadata={
            "trigger_id": request.binding.trigger_id,
            "event_id": request.event_id,
            "attempt": following,
            "delay_ms": delay_ms,
            "error": error,
        },
    )
    edge = _edge(attempt_id(request, failed_attempt), node["id"], "retry", f"attempt {following}")
    return [node], [edge]


def dlq_part(
    request: DispatchRequest,
    attempt_count: int,
    final_error: str | None,
    outcome: str = "retry_exhausted",
) -> tuple[list[Json], list[Json]]:
    """The dead letter's node and the edge from the last attempt, or the one that never began."""
    node = _node(
        request,
        dlq_id(request),
        label=request.binding.trigger_id,
        kind="dlq",
        status="queued",
        outcome=outcome,
        metadata={"attempt_count": attempt_count, "final_error": final_error},
    )
    edge = _edge(
        attempt_id(request, max(attempt_count, 1)),
        node["id"],
        "dlq_move",
        f"{attempt_count} attempts",
    )
    return [node], [edge]


def refused_part(
    request: DispatchRequest, outcome: AttemptOutcome
) -> tuple[list[Json], list[Json]]:
    """The node of an attempt that something forbade before it began, and the edge to it."""
    return ended_part(request, outcome), [_entry_edge(request, outcome.attempt)]


def cancelled_part(
    request: DispatchRequest, attempt: int, error: str
) -> tuple[list[Json], list[Json]]:
    """The node of an attempt that was cancelled before it began, and the edge to it."""
    node = _attempt_node(
        request, attempt, status="cancelled", outcome="cancelled", extra={"error": error}
    )
    return [node], [_entry_edge(request, attempt)]


def _entry_edge(request: DispatchRequest, attempt: int) -> Json:
    target = attempt_id(request, attempt)
    if attempt > 1:
        return _edge(retry_id(request, attempt - 1), target, "retry", f"attempt {attempt}")
    gated = request.binding.when is not None
    source = predicate_id(request) if gated else trigger_id_of(request.event_id)
    kind: EdgeKind = "predicate_gate" if gated else "trigger_dispatch"
    if request.binding.handler.kind == "a2a":
        kind = "a2a_dispatch"
    return _edge(source, target, kind, "true" if gated else None)


def target_agent(uri: str) -> str:
    """The agent an `a2a://host/path` names: its path, or its host where it has none."""
    host, _, path = uri.removeprefix("a2a://").partition("/")
    return path.strip("/") or host


def queue_name(uri: str) -> str:
    return uri.removeprefix("worker://")


def _success(request: DispatchRequest, result: Any) -> tuple[str, Json]:
    fields = result if isinstance(result, dict) else {}
    if request.binding.handler.kind == "worker":
        return "enqueued", _present(fields, job_event_id=int, response_topic=str)
    if request.binding.handler.kind == "a2a":
        extra = _present(fields, task_id=str, state=str)
        if "task_id" not in extra and isinstance(fields.get("id"), str):
            extra["task_id"] = fields["id"]
        pending = fields.get("kind") == "a2a_task_handle"
        return "pending" if pending else "completed", extra
    return "success", {}


def _task_metadata(task: RemoteTask) -> Json:
    return {"task_id": task.task_id, "state": task.state}


def _present(fields: Mapping[str, Any], **wanted: type) -> Json:
    return {name: fields[name] for name, of in wanted.items() if isinstance(fields.get(name), of)}


def _attempt_node(
    request: DispatchRequest,
    attempt: int,
    *,
    status: str,
    outcome: str,
    extra: Mapping[str, Any] | None = None,
) -> Json:
    handler = request.binding.handler
    metadata: Json = {
        "handler_kind": handler.kind,
        "target_uri": handler.uri,
        "attempt": attempt,
        "trigger_id": request.binding.trigger_id,
        "event_id": request.event_id,
    }
    label = handler.uri
    if handler.kind == "a2a":
        label = metadata["target_agent"] = target_agent(handler.uri)
    elif handler.kind == "worker":
        metadata["queue_name"] = queue_name(handler.uri)
    return _node(
        request,
        attempt_id(request, attempt),
        label=label,
        kind=_NODE_KINDS[handler.kind],
        status=status,
        outcome=outcome,
        metadata={**metadata, **(extra or {})},
    )


def _node(
    request: DispatchRequest,
    node_id: str,
    *,
    label: str,
    kind: NodeKind,
    status: str,
    outcome: str,
    metadata: Mapping[str, Any],
) -> Json:
    return {
        "id": node_id,
        "label": label,
        "kind": kind,
        "status": status,
        "outcome": outcome,
        "trace_id": request.trace_id,
        "stage_id": None,
        "node_id": None,
        "worker_id": None,
        "run_id": None,
        "run_path": None,
        "metadata": dict(metadata),
    }


def _edge(from_id: str, to_id: str, kind: EdgeKind, label: str | None = None) -> Json:
    return {"from_id": from_id, "to_id": to_id, "kind": kind, "label": label}
