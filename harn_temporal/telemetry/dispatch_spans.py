"""The spans of an event and its dispatches: what they join, and what they say."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager

from harn_temporal.contracts import AttemptOutcome, DispatchRequest
from harn_temporal.events import TriggerEvent
from harn_temporal.telemetry import tracing
from harn_temporal.trace_ids import traceparent_in

logger = logging.getLogger("harn_temporal.activities")


def ingest_span(event: TriggerEvent) -> AbstractContextManager[tracing.Span]:
    """Joins the sender's trace; without one it begins the event's own."""
    return tracing.span(
        tracing.INGEST,
        traceparent=traceparent_in(event.headers),
        trace_id=event.trace_id,
        attributes={
            "harn.event_id": event.id,
            "harn.trace_id": event.trace_id,
            "harn.provider": event.provider,
            "harn.kind": event.kind,
        },
    )


def dispatch_span(
    name: str,
    request: DispatchRequest,
    *,
    kind: tracing.Kind = "internal",
    attempt: int | None = None,
) -> AbstractContextManager[tracing.Span]:
    """Joins the span that the request carries, else the sender's, else the event's own trace."""
    event, binding = request.event, request.binding
    senders = None if event is None else traceparent_in(event.headers)
    attributes: dict[str, str | int | bool] = {
        "harn.event_id": request.event_id,
        "harn.trace_id": request.trace_id,
        "harn.trigger_id": binding.trigger_id,
        "harn.binding_key": binding.binding_key,
        "harn.handler_kind": binding.handler.kind,
    }
    if attempt is not None:
        attributes["harn.attempt"] = attempt
    if request.replay_of_event_id is not None:
        attributes["harn.replay_of_event_id"] = request.replay_of_event_id
    return tracing.span(
        name,
        kind=kind,
        traceparent=request.traceparent or senders,
        trace_id=request.trace_id,
        attributes=attributes,
    )


def tell_outcome(span: tracing.Span, request: DispatchRequest, outcome: AttemptOutcome) -> None:
    """The status, and what follows; no messages, which may hold secrets. Logged as well."""
    logger.info(
        "attempt_ended",
        extra={
            "trigger_id": request.binding.trigger_id,
            "event_id": request.event_id,
            "trace_id": request.trace_id,
            "attempt": outcome.attempt,
            "status": outcome.status,
            "retry_in_ms": outcome.retry_in_ms,
        },
    )
    span.set({"harn.outcome": outcome.status})
    if outcome.status in ("failed", "timeout", "denied"):
        span.fail(outcome.error_class or outcome.status)
    if outcome.retry_in_ms is not None and not outcome.pending:
        span.event("retry_scheduled", {"harn.delay_ms": outcome.retry_in_ms})
    if outcome.final == "dlq":
        span.event("dlq_moved", {"harn.attempts": outcome.attempt})
