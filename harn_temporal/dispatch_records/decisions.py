"""The records of a dispatch that something else than an attempt decides."""

from __future__ import annotations

from typing import Any, Literal

from harn_temporal import action_graph
from harn_temporal.contracts import DispatchRequest
from harn_temporal.dispatch_records.common import (
    attempt_context,
    graph_record,
    lifecycle_payload,
    lifecycle_record,
    outbox_payload,
    outbox_record,
    trigger_graph_record,
)
from harn_temporal.eventlog.records import Append
from harn_temporal.verdicts import error_text

SkipStage = Literal["predicate", "flow_control"]


def predicate_evaluated(
    request: DispatchRequest, *, passed: bool, reason: str | None, latency_ms: int, now_ms: int
) -> list[Append]:
    """What `when` said, after the event's trigger node; for the key `trigger_key`.

    `reason` says why a predicate that did not run to its end counts as no: its error, or
    `circuit_open` while its breaker is open. Raises ValueError for a binding without `when`.
    """
    when = request.binding.when
    if when is None:
        raise ValueError(f"binding {request.binding.binding_key} has no predicate")
    if reason is not None:
        reason = error_text(reason)
    return [
        trigger_graph_record(request, now_ms=now_ms),
        lifecycle_record(
            request,
            "predicate.evaluated",
            {
                "trigger_id": request.binding.trigger_id,
                "event_id": request.event_id,
                "predicate": when.source,
                "result": passed,
                "reason": reason,
                "latency_ms": latency_ms,
                "replay_of_event_id": request.replay_of_event_id,
            },
            now_ms=now_ms,
        ),
        graph_record(
            request,
            action_graph.predicate_part(
                request, when.source, passed=passed, reason=reason, latency_ms=latency_ms
            ),
            now_ms=now_ms,
            context={"predicate": when.source, "reason": reason, "latency_ms": latency_ms},
        ),
    ]


def skipped(
    request: DispatchRequest, stage: SkipStage, detail: Any, *, workflow_id: str, now_ms: int
) -> list[Append]:
    """The end of a dispatch that `stage` let nothing come of. `detail` is any JSON."""
    binding = request.binding
    return [
        outbox_record(
            request,
            "dispatch_skipped",
            {
                "event_id": request.event_id,
                "trigger_id": binding.trigger_id,
                "binding_key": binding.binding_key,
                "handler_kind": binding.handler.kind,
                "target_uri": binding.handler.uri,
                "skip_stage": stage,
                "detail": detail,
                "replay_of_event_id": request.replay_of_event_id,
            },
            now_ms=now_ms,
            workflow_id=workflow_id,
            final="skipped",
        )
    ]


def held_back(
    request: DispatchRequest, detail: Any, *, workflow_id: str, now_ms: int
) -> list[Append]:
    """The end of a dispatch of which a gate let nothing come; for the key `flow_key`.

    After the event's trigger node, unless `predicate_evaluated` wrote it.
    """
    batch = []
    if request.binding.when is None:
        batch.append(trigger_graph_record(request, now_ms=now_ms))
    batch += skipped(request, "flow_control", detail, workflow_id=workflow_id, now_ms=now_ms)
    return batch


def cancelled(
    request: DispatchRequest, attempt_count: int, *, error: str, workflow_id: str, now_ms: int
) -> list[Append]:
    """The end of a dispatch that was cancelled while no attempt ran.

    `attempt_count` attempts have run; the records name the one that now never will, so the key
    is `end_key(workflow_id, attempt_count + 1)`. There is no `attempt_recorded`: nothing ran.
    """
    attempt = attempt_count + 1
    error = error_text(error)
    batch = []
    if attempt == 1 and request.binding.when is None:
        batch.append(trigger_graph_record(request, now_ms=now_ms))
    batch += [
        lifecycle_record(
            request,
            "DispatchFailed",
            lifecycle_payload(request, attempt, error=error),
            now_ms=now_ms,
        ),
        outbox_record(
            request,
            "dispatch_failed",
            outbox_payload(request, attempt, error=error),
            now_ms=now_ms,
            workflow_id=workflow_id,
            attempt=attempt,
            final="cancelled",
        ),
        graph_record(
            request,
            action_graph.cancelled_part(request, attempt, error),
            now_ms=now_ms,
            context=attempt_context(request, attempt, error=error),
        ),
    ]
    return batch
