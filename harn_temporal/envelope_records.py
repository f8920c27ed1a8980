"""The records that put an event before a dispatcher: what a replay reads, and the envelope."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from harn_temporal import headers
from harn_temporal.bindings import Binding
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.records import Append
from harn_temporal.events import TriggerEvent
from harn_temporal.trace_ids import traceparent_in

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")


def event_records(
    binding: Binding,
    event: TriggerEvent,
    event_json: dict[str, Any],
    *,
    package: str,
    now_ms: int,
    replay: int | None = None,
    traceparent: str | None = None,
) -> list[Append]:
    """The event for a binding, and its envelope as the last record.

    `replay` says which replay this is, counted from 1. `traceparent` is the trace that the
    envelope joins; without it, the one that the event's own headers name.
    """
    version = binding.version or None
    found = event_headers(binding, event)
    ours = {
        headers.ACCEPTED_AT_MS: str(_epoch_ms(event.received_at, now_ms)),
        headers.QUEUE_APPENDED_AT_MS: str(now_ms),
        headers.PACKAGE: package,
    }
    if replay is not None:
        found[headers.REPLAY_OF] = event.id
        ours[headers.REPLAY] = str(replay)
    joined = traceparent or traceparent_in(event.headers)
    # A malformed one joins no trace, and a reader may stumble on it.
    if joined is not None and _TRACEPARENT.fullmatch(joined):
        ours[headers.TRACEPARENT] = joined
    return [
        Append(
            topic=topics.TRIGGERS_EVENTS,
            kind="trigger_event",
            payload={
                "binding_id": binding.trigger_id,
                "binding_version": version,
                "replay_of_event_id": None if replay is None else event.id,
                "event": event_json,
            },
            headers=found,
            occurred_at_ms=now_ms,
        ),
        Append(
            topic=topics.tenant_topic(event.tenant_id, topics.INBOX_ENVELOPES),
            kind="event_ingested",
            payload={
                "trigger_id": binding.trigger_id,
                "binding_version": version,
                "event": event_json,
            },
            headers={**found, **ours},
            occurred_at_ms=now_ms,
        ),
    ]


def event_headers(binding: Binding, event: TriggerEvent) -> dict[str, str]:
    found = {
        "event_id": event.id,
        "trace_id": event.trace_id,
        "provider": event.provider,
        "kind": event.kind,
        "trigger_id": binding.trigger_id,
        "binding_key": binding.binding_key,
        "handler_kind": binding.handler.kind,
        headers.TENANT_ID: event.tenant_id,
    }
    return {name: value for name, value in found.items() if value is not None}


def _epoch_ms(moment: str, otherwise: int) -> int:
    """An RFC 3339 time in milliseconds since the epoch; `otherwise` where it is none."""
    try:
        found = datetime.fromisoformat(moment.upper())
    except ValueError:
        return otherwise
    if found.tzinfo is None:
        return otherwise
    return int(found.timestamp() * 1000)
