"""The records of an attempt: one batch when it starts, one when it has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harn_temporal import action_graph, headers, ids
from harn_temporal.clock import rfc3339
from harn_temporal.contracts import (
    AttemptOutcome,
    AttemptStatus,
    DispatchRequest,
    EventAddress,
)
from harn_temporal.dispatch_records.common import (
    attempt_context,
    dispatch_record,
    event_of,
    graph_record,
    lifecycle_payload,
    lifecycle_record,
    outbox_payload,
    outbox_record,
    trigger_graph_record,
)
from harn_temporal.dispatch_records.dead_letters import closed, entry_record, history_of
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.records import Append

_KINDS: dict[AttemptStatus, tuple[str, str]] = {
    "success": ("DispatchSucceeded", "dispatch_succeeded"),
    "waiting": ("DispatchWaiting", "dispatch_waiting"),
}
_FAILED = ("DispatchFailed", "dispatch_failed")


def started(
    request: DispatchRequest, attempt: int, *, workflow_id: str, now_ms: int
) -> list[Append]:
    """What is appended before an attempt acts, for the key `start_key`.

    Attempt 1 begins with the event's trigger node, unless `predicate_evaluated` wrote it.
    """
    batch = []
    if attempt == 1 and request.binding.when is None:
        batch.append(trigger_graph_record(request, now_ms=now_ms))
    batch += [
        lifecycle_record(
            request, "DispatchStarted", lifecycle_payload(request, attempt), now_ms=now_ms
        ),
        outbox_record(
            request,
            "dispatch_started",
            outbox_payload(request, attempt),
            now_ms=now_ms,
            workflow_id=workflow_id,
            attempt=attempt,
            more=_places(request),
        ),
        graph_record(
            request,
            action_graph.running_part(request, attempt),
            now_ms=now_ms,
            context=attempt_context(request, attempt),
        ),
    ]
    return batch


def _places(request: DispatchRequest) -> dict[str, str]:
    """What tells who reads the log how to dispatch it once more."""
    found = {headers.EVENT_ADDRESS: str(request.address)}
    if request.batch is not None:
        found[headers.BATCH] = str(request.batch)
    return found


def ended(
    request: DispatchRequest,
    outcome: AttemptOutcome,
    *,
    started_at_ms: int,
    now_ms: int,
    workflow_id: str,
    history: Sequence[Mapping[str, Any]] = (),
    dead_letter: Mapping[str, Any] | None = None,
    result_address: EventAddress | None = None,
) -> list[Append]:
    """What is appended when an attempt has ended, for the key `end_key`.

    `history` holds the payloads of the `attempt_recorded` of the attempts before this one; only
    a dead letter needs them. `result_address` is where the outbox record of this batch will lie:
    given for a large result, which is then written there only, and referenced elsewhere.

    `dead_letter` is the payload of the pending `dlq_entry` that a replay is about: its success
    resolves it, and where the replay dies as well, it is the same dead letter that goes on.
    """
    attempt = attempt_payload(request, outcome, started_at_ms=started_at_ms, now_ms=now_ms)
    batch = [
        dispatch_record(
            request,
            topics.TRIGGER_ATTEMPTS,
            "attempt_recorded",
            attempt,
            now_ms=now_ms,
            attempt=outcome.attempt,
        ),
        *_ended_records(
            request,
            outcome,
            now_ms=now_ms,
            workflow_id=workflow_id,
            result_address=result_address,
        ),
    ]
    if outcome.retry_in_ms is not None:
        batch += _retry_records(request, outcome, outcome.retry_in_ms, now_ms=now_ms)
    if outcome.final == "dlq":
        batch += _dlq_records(
            request, outcome, [*map(dict, history), attempt], dead_letter, now_ms=now_ms
        )
    if outcome.final == "succeeded" and dead_letter is not None:
        batch.append(closed(dead_letter, "resolved", now_ms=now_ms))
    return batch


def refused(
    request: DispatchRequest,
    reason: str,
    error: str,
    *,
    now_ms: int,
    workflow_id: str,
    dead_letter: Mapping[str, Any] | None = None,
) -> list[Append]:
    """The end of a dispatch that becomes a dead letter before its first attempt, for `end_key`.

    `reason` is that of `DlqMoved`. As in `cancelled`, the records name the attempt that never
    will be, and there is no `attempt_recorded`.
    """
    outcome = AttemptOutcome(
        attempt=1, status="failed", error=error, error_class="unknown", final="dlq"
    )
    batch = []
    if request.binding.when is None:
        batch.append(trigger_graph_record(request, now_ms=now_ms))
    *told, _ = _ended_records(
        request, outcome, now_ms=now_ms, workflow_id=workflow_id, result_address=None
    )
    batch += told
    batch.append(
        graph_record(
            request,
            action_graph.refused_part(request, outcome),
            now_ms=now_ms,
            context=attempt_context(request, 1, error=error, reason=reason),
        )
    )
    unbegun = outcome.model_copy(update={"attempt": 0})
    batch += _dlq_records(request, unbegun, [], dead_letter, now_ms=now_ms, reason=reason)
    return batch


def attempt_payload(
    request: DispatchRequest, outcome: AttemptOutcome, *, started_at_ms: int, now_ms: int
) -> dict[str, Any]:
    """The payload of `attempt_recorded`, which a dead letter carries for each of its attempts."""
    binding = request.binding
    return {
        "trigger_id": binding.trigger_id,
        "binding_key": binding.binding_key,
        "event_id": request.event_id,
        "attempt": outcome.attempt,
        "handler_kind": binding.handler.kind,
        "started_at": rfc3339(started_at_ms),
        "completed_at": rfc3339(now_ms),
        "outcome": outcome.status,
        "error_msg": outcome.error,
    }


def _ended_records(
    request: DispatchRequest,
    outcome: AttemptOutcome,
    *,
    now_ms: int,
    workflow_id: str,
    result_address: EventAddress | None,
) -> list[Append]:
    lifecycle_kind, outbox_kind = _KINDS.get(outcome.status, _FAILED)
    found: dict[str, Any]
    if outcome.status == "success":
        found = {"result": outcome.result}
    elif outcome.status == "waiting":
        found = {"message": outcome.error}
    else:
        found = {"error": outcome.error}
    told = found
    if result_address is not None:
        told = {"result": None, "result_address": result_address.model_dump()}
    return [
        lifecycle_record(
            request,
            lifecycle_kind,
            lifecycle_payload(request, outcome.attempt, **told),
            now_ms=now_ms,
        ),
        outbox_record(
            request,
            outbox_kind,
            outbox_payload(request, outcome.attempt, **found),
            now_ms=now_ms,
            workflow_id=workflow_id,
            attempt=outcome.attempt,
            final=outcome.final,
            error_class=outcome.error_class,
        ),
        graph_record(
            request,
            (action_graph.ended_part(request, outcome), []),
            now_ms=now_ms,
            context=attempt_context(request, outcome.attempt, **told),
        ),
    ]


def _retry_records(
    request: DispatchRequest, outcome: AttemptOutcome, delay_ms: int, *, now_ms: int
) -> list[Append]:
    following = outcome.attempt + 1
    binding = request.binding
    return [
        graph_record(
            request,
            action_graph.retry_part(request, outcome.attempt, delay_ms, outcome.error),
            now_ms=now_ms,
            context={"attempt": following, "delay_ms": delay_ms},
        ),
        lifecycle_record(
            request,
            "RetryScheduled",
            {
                "event_id": request.event_id,
                "attempt": following,
                "delay_ms": delay_ms,
                "error": outcome.error,
                "replay_of_event_id": request.replay_of_event_id,
            },
            now_ms=now_ms,
        ),
        dispatch_record(
            request,
            topics.TRIGGER_ATTEMPTS,
            "retry_scheduled",
            {
                "event_id": request.event_id,
                "attempt": following,
                "trigger_id": binding.trigger_id,
                "binding_key": binding.binding_key,
                "delay_ms": delay_ms,
                "error": outcome.error,
                "replay_of_event_id": request.replay_of_event_id,
            },
            now_ms=now_ms,
            attempt=following,
        ),
    ]


def _dlq_records(
    request: DispatchRequest,
    outcome: AttemptOutcome,
    attempts: Sequence[dict[str, Any]],
    dead_letter: Mapping[str, Any] | None,
    *,
    now_ms: int,
    reason: str | None = None,
) -> list[Append]:
    binding = request.binding
    event = event_of(request)
    event_json = event.to_json()
    error_class = outcome.error_class or "unknown"
    moved = dispatch_record(
        request,
        topics.TRIGGER_DLQ,
        "dlq_moved",
        {
            "trigger_id": binding.trigger_id,
            "binding_key": binding.binding_key,
            "event": event_json,
            "attempt_count": outcome.attempt,
            "final_error": outcome.error,
            "error_class": error_class,
            "attempts": list(attempts),
        },
        now_ms=now_ms,
        attempt=outcome.attempt or None,
    )
    if reason is not None:
        moved = replace(moved, headers={**moved.headers, headers.DLQ_REASON: reason})
    return [
        graph_record(
            request,
            action_graph.dlq_part(
                request, outcome.attempt, outcome.error, reason or "retry_exhausted"
            ),
            now_ms=now_ms,
            context={"attempt_count": outcome.attempt, "final_error": outcome.error},
        ),
        lifecycle_record(
            request,
            "DlqMoved",
            {
                "event_id": request.event_id,
                "attempt_count": outcome.attempt,
                "final_error": outcome.error,
                **({} if reason is None else {"reason": reason}),
                "replay_of_event_id": request.replay_of_event_id,
            },
            now_ms=now_ms,
        ),
        moved,
        entry_record(
            {
                "id": ids.dlq_id(lambda: now_ms) if dead_letter is None else dead_letter["id"],
                "event_id": request.event_id,
                "binding_id": binding.trigger_id,
                "binding_version": binding.version,
                "provider": event.provider,
                "kind": event.kind,
                "state": "pending",
                "error": outcome.error,
                "error_class": error_class,
                "event": event_json,
                "retry_history": [
                    *history_of(dead_letter),
                    *(
                        {
                            "attempt": attempt["attempt"],
                            "at": attempt["completed_at"],
                            "status": attempt["outcome"],
                            "error": attempt["error_msg"],
                        }
                        for attempt in attempts
                    ),
                ],
            },
            now_ms=now_ms,
        ),
    ]
