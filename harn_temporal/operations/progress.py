"""How far dispatches have come, in the words of Harn's operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harn_temporal.clock import rfc3339
from harn_temporal.errors import StoreError
from harn_temporal.eventlog.log import EventLog, Record
from harn_temporal.eventlog.topics import TRIGGER_OUTBOX
from harn_temporal.headers import OUTCOME, REPLAY_OF, WORKFLOW_ID
from harn_temporal.inspection.paging import records_of, topics_like

Key = tuple[str, str]
"""Binding key and event id."""

TERMINAL = frozenset({"succeeded", "failed", "dlq", "skipped", "waiting", "cancelled"})

_KINDS = {
    "dispatch_started": "in_progress",
    "dispatch_succeeded": "succeeded",
    "dispatch_waiting": "waiting",
    "dispatch_skipped": "skipped",
}


@dataclass(slots=True)
class Progress:
    """The dispatch of an event for a binding; its replays are dispatches of their own.

    `status` is `pending`, `in_progress`, `retry_scheduled`, or how it ended.
    """

    status: str = "pending"
    attempts: int = 0
    error: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    terminal: bool = False
    cancel_requested: bool = False

    @property
    def cancellable(self) -> bool:
        return not self.terminal and not self.cancel_requested


async def progress(log: EventLog, event_id: str | None = None) -> dict[Key, Progress]:
    """Every dispatch that has begun, or those of one event."""
    found: dict[Key, Progress] = {}
    for topic in await topics_like(log, TRIGGER_OUTBOX):
        async for record in records_of(log, topic):
            if event_id is None or record.headers.get("event_id") == event_id:
                _fold(found, record)
    letters = await log.query(lambda reader: reader.dead_letters.all())
    for letter in letters:
        known = found.get((letter.binding_key, letter.event_id))
        if known is not None and not known.terminal:  # Harn's: its outbox does not tell the end
            known.status, known.terminal, known.error = "dlq", True, letter.error
    return found


def _fold(found: dict[Key, Progress], record: Record) -> None:
    headers = record.headers
    binding_key, event_id = headers.get("binding_key"), headers.get("event_id")
    if binding_key is None or event_id is None or REPLAY_OF in headers:
        return
    known = found.setdefault((binding_key, event_id), Progress())
    attempt = headers.get("attempt", "")
    if attempt.isascii() and attempt.isdecimal() and record.kind == "dispatch_started":
        known.attempts = max(known.attempts, int(attempt))
    at = rfc3339(record.occurred_at_ms)
    final = headers.get(OUTCOME)
    if record.kind == "dispatch_started":
        known.status, known.started_at, known.error = "in_progress", at, None
        return
    known.completed_at = at
    if record.kind == "dispatch_failed":
        known.error = _error(record)
        # A failed attempt of ours without an outcome is retried; of Harn's, that is not known.
        known.status = final or ("retry_scheduled" if WORKFLOW_ID in headers else "failed")
        known.terminal = final is not None
    elif record.kind in _KINDS:
        known.status = final or _KINDS[record.kind]
        known.terminal = True


def _error(record: Record) -> str | None:
    try:
        payload: Any = record.payload
    except StoreError:
        return None
    error = payload.get("error") if isinstance(payload, dict) else None
    return error if isinstance(error, str) else None
