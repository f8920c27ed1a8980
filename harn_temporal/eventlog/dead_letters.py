"""Dead letters: dispatches whose attempts were used up, and what has become of them since."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from harn_temporal.canonical import clean_text
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.fields import Malformed, integer, mapping, text
from harn_temporal.eventlog.near_ids import near_ids
from harn_temporal.eventlog.records import Record
from harn_temporal.eventlog.statements import Row, Statements

ENTRY = "dlq_entry"
PENDING = "pending"
RESOLVED = "resolved"
DISCARDED = "discarded"

_NO_VERSION = -1


@dataclass(frozen=True, slots=True)
class StoredDeadLetter:
    """The latest word on a dead letter, without its event.

    `version` is None where the binding had none. `moved_at_ms` is when it died, and `record_id`
    says where in `trigger.dlq` the latest word lies.
    """

    id: str
    event_id: str
    trigger_id: str
    version: int | None
    provider: str
    kind: str
    tenant_id: str | None
    state: str
    error: str
    error_class: str
    attempts: int
    moved_at_ms: int
    record_id: int

    @property
    def binding_key(self) -> str:
        return self.trigger_id if self.version is None else f"{self.trigger_id}@v{self.version}"


class DeadLetterTables:
    """The dead letters as they stand in a transaction, in the order in which they died."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    def all(self) -> list[StoredDeadLetter]:
        return [_letter(row) for row in self._statements.rows("dead_letters.all")]

    def in_state(self, state: str) -> list[StoredDeadLetter]:
        return [_letter(row) for row in self._statements.rows("dead_letters.in_state", state=state)]

    def of_event(self, event_id: str) -> list[StoredDeadLetter]:
        rows = self._statements.rows("dead_letters.of_event", event_id=clean_text(event_id))
        return [_letter(row) for row in rows]

    def get(self, letter_id: str) -> StoredDeadLetter | None:
        rows = self._statements.rows("dead_letters.one", id=clean_text(letter_id))
        return _letter(rows[0]) if rows else None

    def near(self, letter_id: str) -> list[str]:
        """Ids like this one, the nearest first; at most three."""
        return near_ids(self._statements, "dead_letters", clean_text(letter_id))

    def pending(self, event_id: str, trigger_id: str) -> StoredDeadLetter | None:
        """The latest pending one of an event for a trigger: what a replay of it may resolve."""
        found = [
            letter
            for letter in self.of_event(event_id)
            if letter.state == PENDING and letter.trigger_id == trigger_id
        ]
        return found[-1] if found else None

    def depth(self) -> int:
        """How many are pending."""
        return int(self._statements.rows("dead_letters.depth")[0][0])


class DeadLettersProjection:
    """Of several records with one id the latest counts."""

    name = "dead_letters"
    version = 1

    def folds(self, topic: str) -> bool:
        return topic == topics.TRIGGER_DLQ

    def fold(self, statements: Statements, record: Record) -> None:
        if record.kind != ENTRY:
            return
        payload = mapping(record)
        version = payload.get("binding_version")
        history = payload.get("retry_history", [])
        if not isinstance(history, list):
            raise Malformed("has no list in retry_history")
        statements.run(
            "dead_letters.note",
            id=text(payload, "id"),
            event_id=text(payload, "event_id"),
            trigger_id=text(payload, "binding_id"),
            version=_NO_VERSION if version is None else integer(payload, "binding_version"),
            provider=text(payload, "provider"),
            kind=text(payload, "kind"),
            tenant_id=_tenant(payload),
            state=text(payload, "state"),
            error=text(payload, "error"),
            error_class=text(payload, "error_class", "unknown"),
            attempts=len(history),
            at_ms=record.occurred_at_ms,
            record_id=record.event_id,
        )


def _tenant(payload: dict[str, Any]) -> str:
    event = payload.get("event", {})
    if not isinstance(event, dict):
        raise Malformed("has no JSON object in event")
    tenant = event.get("tenant_id")
    return clean_text(tenant) if isinstance(tenant, str) else ""


def _letter(row: Row) -> StoredDeadLetter:
    letter = StoredDeadLetter(*row)
    version = None if letter.version == _NO_VERSION else letter.version
    return replace(letter, version=version, tenant_id=letter.tenant_id or None)
