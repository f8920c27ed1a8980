"""What was counted over the whole of the log: the counters that a store can tell of itself."""

from __future__ import annotations

import json

from harn_temporal import headers
from harn_temporal.canonical import clean_text
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.records import Record
from harn_temporal.eventlog.statements import Statements

RECEIVED = "received"
"""Labels: trigger id, provider."""
DISPATCHED = "dispatched"
"""Labels: trigger id, kind of the handler, outcome."""
RETRIED = "retried"
"""Labels: trigger id, attempt."""
DEAD = "dead"
"""Labels: trigger id, reason."""

EXHAUSTED = "retry_exhausted"
CIRCUIT_OPEN = "circuit_open"
"""Of a dead letter that had no attempt."""

MOST_ATTEMPTS = 20
"""Retries beyond it are counted together: a trigger may be given any number of attempts."""

Tally = tuple[str, tuple[str, ...]]
"""What is counted, and its labels."""

_TOPICS = (
    topics.INBOX_ENVELOPES,
    topics.TRIGGER_OUTBOX,
    topics.TRIGGER_ATTEMPTS,
    topics.TRIGGER_DLQ,
)


def tally_of(record: Record) -> Tally | None:
    """What a record adds one to, by its kind and headers alone; None for all others."""
    found = record.headers
    trigger_id = found.get("trigger_id")
    if trigger_id is None:
        return None
    match record.kind:
        case "event_ingested":
            again = headers.REPLAY in found or headers.READMITTED_FROM in found
            ours = headers.PACKAGE in found and not again
            return (RECEIVED, (trigger_id, found.get("provider", ""))) if ours else None
        case "retry_scheduled":
            return RETRIED, (trigger_id, _attempt(found.get("attempt", "")))
        case "dlq_moved":
            return DEAD, (trigger_id, reason_of(record))
    outcome = found.get(headers.OUTCOME)
    if outcome is None or not topics.is_of(record.topic, topics.TRIGGER_OUTBOX):
        return None
    return DISPATCHED, (trigger_id, found.get("handler_kind", ""), outcome)


def reason_of(record: Record) -> str:
    """Why a `dlq_moved` came about."""
    return record.headers.get(headers.DLQ_REASON, EXHAUSTED)


def _attempt(written: str) -> str:
    if not (written.isascii() and written.isdecimal()):
        return ""
    return (
        str(int(written))
        if len(written) <= len(str(MOST_ATTEMPTS)) and int(written) <= MOST_ATTEMPTS
        else "more"
    )


class TallyTables:
    """The tallies as they stand in a transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    def all(self) -> dict[Tally, int]:
        return {
            (what, tuple(json.loads(labels))): count
            for what, labels, count in self._statements.rows("tallies.all")
        }


class TalliesProjection:
    """Sums, so records may come in any order."""

    name = "tallies"
    version = 1

    def folds(self, topic: str) -> bool:
        return any(topics.is_of(topic, plain) for plain in _TOPICS)

    def fold(self, statements: Statements, record: Record) -> None:
        tally = tally_of(record)
        if tally is None:
            return
        what, labels = tally
        written = json.dumps([clean_text(label) for label in labels], ensure_ascii=False)
        statements.run("tallies.add", what=what, labels=written)
