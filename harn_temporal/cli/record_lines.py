"""A record of the log: JSON for programs, the essentials on a line or two for people."""

from __future__ import annotations

from typing import Any

from rich.cells import cell_len, set_cell_size

from harn_temporal.canonical import encode
from harn_temporal.cli.tables import printable
from harn_temporal.clock import rfc3339
from harn_temporal.errors import StoreError
from harn_temporal.eventlog.log import Record

INDENT = 4


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


def record_text(record: Record, *, with_topic: bool, width: int | None) -> str:
    """Id, time, kind, whom it is about, and of the payload what that does not say.

    One line; two, each cut to fit, where it is longer than `width` columns.
    """
    about = record.headers.get("binding_key") or record.headers.get("trigger_id") or ""
    attempt = record.headers.get("attempt")
    if attempt:
        about += f" attempt {attempt}"
    where = f"{record.topic} {record.event_id}" if with_topic else str(record.event_id)
    parts = (where, rfc3339(record.occurred_at_ms), record.kind, about)
    head = printable("  ".join(part for part in parts if part))
    payload = printable(_essentials(record))
    line = f"{head}  {payload}"
    if width is None or cell_len(line) <= width:
        return line
    second = set_cell_size(payload, width - INDENT)
    return f"{set_cell_size(head, width).rstrip()}\n{' ' * INDENT}{second.rstrip()}"


def _essentials(record: Record) -> str:
    """The payload without what is null, and without what the headers say too."""
    fields = record_json(record)
    payload = fields["payload"]
    if not isinstance(payload, dict):
        return str(fields.get("undecodable") or encode(payload).decode())
    kept = {
        name: value
        for name, value in payload.items()
        if value is not None and str(value) != record.headers.get(name)
    }
    return encode(kept).decode()
