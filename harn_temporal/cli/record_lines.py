"""A record of the log as one line: JSON for programs, the essentials for people."""

from __future__ import annotations

from typing import Any

from harn_temporal.canonical import encode
from harn_temporal.cli.tables import printable
from harn_temporal.clock import rfc3339
from harn_temporal.errors import StoreError
from harn_temporal.eventlog.log import Record


def record_json(record: Record) -> dict[str, Any]:
    """`payload` is null where it is no JSON; then `undecodable` holds its text."""
    fields: dict[str, Any] = {
        "topic": record.topic,
        "event_id": record.event_id,
        "kind": record.kind,
        "occurred_at_ms": record.occurred_at_ms,
        "headers": dict(record.headers),
    }
    try:
        return fields | {"payload": record.payload}
    except StoreError:
        return fields | {"payload": None, "undecodable": record.raw.decode("utf-8", "replace")}


def record_line(record: Record, *, with_topic: bool) -> str:
    """Id, time, kind, whom it is about, and the payload; longer than most terminals are wide."""
    fields = record_json(record)
    about = record.headers.get("binding_key") or record.headers.get("trigger_id") or ""
    attempt = record.headers.get("attempt")
    if attempt:
        about += f" attempt {attempt}"
    payload = fields.get("undecodable") or encode(fields["payload"]).decode()
    where = f"{record.topic} {record.event_id}" if with_topic else str(record.event_id)
    parts = (where, rfc3339(record.occurred_at_ms), record.kind, about, payload)
    return printable("  ".join(part for part in parts if part))
