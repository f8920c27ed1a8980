"""What becomes of a dead letter after it died: each time its whole entry is written again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from harn_temporal.clock import rfc3339
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.records import Append

Json = dict[str, Any]
Closing = Literal["resolved", "discarded"]

_STATUS: dict[Closing, str] = {"resolved": "success", "discarded": "discarded"}


def closed(entry: Mapping[str, Any], state: Closing, *, now_ms: int) -> Append:
    """The record that ends a dead letter; `entry` is the payload of its latest `dlq_entry`.

    `resolved`: a replay of its event succeeded. `discarded`: somebody gave it up.
    """
    history = history_of(entry)
    last = {
        "attempt": len(history) + 1,
        "at": rfc3339(now_ms),
        "status": _STATUS[state],
        "error": None,
    }
    return entry_record({**entry, "state": state, "retry_history": [*history, last]}, now_ms=now_ms)


def history_of(entry: Mapping[str, Any] | None) -> Sequence[Any]:
    history = [] if entry is None else entry.get("retry_history")
    return history if isinstance(history, list) else []


def entry_record(payload: Json, *, now_ms: int) -> Append:
    return Append(
        topic=topics.TRIGGER_DLQ, kind="dlq_entry", payload=payload, occurred_at_ms=now_ms
    )
