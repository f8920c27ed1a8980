"""Dead letters: dispatches whose attempts were used up, as `dlq_entry` records tell of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from harn_temporal.clock import rfc3339
from harn_temporal.errors import NotFoundError, StoreError
from harn_temporal.eventlog.dead_letters import StoredDeadLetter
from harn_temporal.eventlog.log import EventLog, Reader
from harn_temporal.eventlog.topics import TRIGGER_DLQ
from harn_temporal.inspection.dead_letter_selection import Selection, check_names


def letter_json(letter: StoredDeadLetter, now_ms: int) -> dict[str, Any]:
    return {
        "id": letter.id,
        "event_id": letter.event_id,
        "trigger_id": letter.trigger_id,
        "binding_key": letter.binding_key,
        "provider": letter.provider,
        "kind": letter.kind,
        "tenant_id": letter.tenant_id,
        "state": letter.state,
        "error_class": letter.error_class,
        "error": letter.error,
        "attempts": letter.attempts,
        "moved_at": rfc3339(letter.moved_at_ms),
        "age_ms": max(0, now_ms - letter.moved_at_ms),
    }


@dataclass(frozen=True, slots=True)
class Contents:
    """The event that was not handled, and `attempt, at, status, error` of each attempt."""

    event: dict[str, JsonValue]
    retry_history: list[dict[str, JsonValue]]

    def to_json(self) -> dict[str, Any]:
        return {"event": self.event, "retry_history": self.retry_history}


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """`letters` are in the order in which they died; `unreadable` are ids of `trigger.dlq`."""

    letters: tuple[StoredDeadLetter, ...]
    unreadable: tuple[int, ...]


async def dead_letters(log: EventLog, wanted: Selection | None = None) -> DeadLetters:
    """Every dead letter of a store. Where one was written again, its latest record counts.

    Raises NotFoundError where a name in `wanted` is none that the store knows.
    """

    def look(reader: Reader) -> DeadLetters:
        letters = tuple(reader.dead_letters.all())
        if wanted is not None:
            check_names(reader, wanted, letters)
        skipped = (each for each in reader.skipped() if each.topic == TRIGGER_DLQ)
        return DeadLetters(letters, tuple(each.event_id for each in skipped))

    return await log.query(look)


async def find(log: EventLog, wanted: str) -> StoredDeadLetter:
    """The dead letter with this id, or the only one of the event with this id.

    Raises NotFoundError where there is none, naming the nearest, or where an event has several.
    """
    matching = await log.query(lambda reader: _matching(reader, wanted))
    if not matching:
        raise NotFoundError(await log.query(lambda reader: _unknown(reader, wanted)))
    if len(matching) > 1:
        choices = "\n".join(f"  {letter.id}  {letter.binding_key}" for letter in matching)
        raise NotFoundError(f"event {wanted} has {len(matching)} dead letters:\n{choices}")
    return matching[0]


async def contents(log: EventLog, letter: StoredDeadLetter) -> Contents:
    """What else the record of a dead letter holds. Raises StoreError where it is gone."""
    for record in await log.read(TRIGGER_DLQ, letter.record_id - 1, 1):
        if record.event_id == letter.record_id:
            payload = record.payload
            return Contents(payload.get("event", {}), payload.get("retry_history", []))
    raise StoreError(f"record {letter.record_id} of {TRIGGER_DLQ} is gone")


def _matching(reader: Reader, wanted: str) -> list[StoredDeadLetter]:
    letter = reader.dead_letters.get(wanted)
    return reader.dead_letters.of_event(wanted) if letter is None else [letter]


def _unknown(reader: Reader, wanted: str) -> str:
    near = reader.dead_letters.near(wanted)
    if near:
        return f"no dead letter {wanted}. Did you mean {' or '.join(near)}?"
    return f"no dead letter {wanted}. `harn-temporal dlq ls --all` shows them"
