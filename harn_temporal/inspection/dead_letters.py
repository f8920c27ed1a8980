"""Dead letters: dispatches whose attempts were used up, as `dlq_entry` records tell of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, JsonValue, ValidationError

from harn_temporal.clock import rfc3339
from harn_temporal.errors import NotFoundError, StoreError
from harn_temporal.eventlog.log import EventLog, Record
from harn_temporal.eventlog.topics import TRIGGER_DLQ
from harn_temporal.inspection.paging import records_of

ENTRY = "dlq_entry"


class _Entry(BaseModel):
    """What is read of a `dlq_entry`, ours or Harn's."""

    id: str
    event_id: str
    binding_id: str
    binding_version: int | None = None
    provider: str
    kind: str
    state: str
    error: str
    error_class: str = "unknown"
    event: dict[str, JsonValue] = {}
    retry_history: list[dict[str, JsonValue]] = []


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """The latest word on a dead letter, without its event, which `contents` reads."""

    id: str
    event_id: str
    trigger_id: str
    binding_key: str
    provider: str
    kind: str
    tenant_id: str | None
    state: str
    error: str
    error_class: str
    attempts: int
    moved_at_ms: int
    record_id: int
    """Where in `trigger.dlq` it lies."""

    def to_json(self, now_ms: int) -> dict[str, Any]:
        return {
            "id": self.id,
            "event_id": self.event_id,
            "trigger_id": self.trigger_id,
            "binding_key": self.binding_key,
            "provider": self.provider,
            "kind": self.kind,
            "tenant_id": self.tenant_id,
            "state": self.state,
            "error_class": self.error_class,
            "error": self.error,
            "attempts": self.attempts,
            "moved_at": rfc3339(self.moved_at_ms),
            "age_ms": max(0, now_ms - self.moved_at_ms),
        }


@dataclass(frozen=True, slots=True)
class Contents:
    """The event that was not handled, and `attempt, at, status, error` of each attempt."""

    event: dict[str, JsonValue]
    retry_history: list[dict[str, JsonValue]]

    def to_json(self) -> dict[str, Any]:
        return {"event": self.event, "retry_history": self.retry_history}


@dataclass(frozen=True, slots=True)
class Selection:
    """Which dead letters are meant; None means any. Ages are in milliseconds."""

    trigger_id: str | None = None
    provider: str | None = None
    error_class: str | None = None
    tenant_id: str | None = None
    state: str | None = None
    older_than_ms: int | None = None
    newer_than_ms: int | None = None

    def admits(self, letter: DeadLetter, now_ms: int) -> bool:
        age = now_ms - letter.moved_at_ms
        wanted = (
            (self.trigger_id, letter.trigger_id),
            (self.provider, letter.provider),
            (self.error_class, letter.error_class),
            (self.tenant_id, letter.tenant_id),
            (self.state, letter.state),
        )
        return (
            all(want is None or want == has for want, has in wanted)
            and (self.older_than_ms is None or age > self.older_than_ms)
            and (self.newer_than_ms is None or age < self.newer_than_ms)
        )


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """`letters` are in the order in which they died; `unreadable` are ids of `trigger.dlq`."""

    letters: tuple[DeadLetter, ...]
    unreadable: tuple[int, ...]


async def dead_letters(log: EventLog) -> DeadLetters:
    """Every dead letter of a store. Where one was written again, its latest record counts."""
    found: dict[str, DeadLetter] = {}
    unreadable = []
    async for record in records_of(log, TRIGGER_DLQ):
        if record.kind != ENTRY:
            continue
        entry = _read(record)
        if entry is None:
            unreadable.append(record.event_id)
            continue
        before = found.get(entry.id)
        moved_at_ms = before.moved_at_ms if before else record.occurred_at_ms
        found[entry.id] = _letter(entry, record.event_id, moved_at_ms)
    return DeadLetters(tuple(found.values()), tuple(unreadable))


async def find(log: EventLog, wanted: str) -> DeadLetter:
    """The dead letter with this id, or the only one of the event with this id.

    Raises NotFoundError where there is none, or where an event has several: it names them.
    """
    letters = (await dead_letters(log)).letters
    matching = [letter for letter in letters if wanted in {letter.id, letter.event_id}]
    if not matching:
        raise NotFoundError(f"no dead letter {wanted}. `harn-temporal dlq ls --all` shows them")
    if len(matching) > 1:
        choices = "\n".join(f"  {letter.id}  {letter.binding_key}" for letter in matching)
        raise NotFoundError(f"event {wanted} has {len(matching)} dead letters:\n{choices}")
    return matching[0]


async def contents(log: EventLog, letter: DeadLetter) -> Contents:
    """What else the record of a dead letter holds. Raises StoreError where it is gone."""
    for record in await log.read(TRIGGER_DLQ, letter.record_id - 1, 1):
        entry = _read(record)
        if entry is not None and entry.id == letter.id:
            return Contents(entry.event, entry.retry_history)
    raise StoreError(f"record {letter.record_id} of {TRIGGER_DLQ} is gone")


def _read(record: Record) -> _Entry | None:
    try:
        return _Entry.model_validate(record.payload)
    except (ValidationError, StoreError):
        return None


def _letter(entry: _Entry, record_id: int, moved_at_ms: int) -> DeadLetter:
    tenant = entry.event.get("tenant_id")
    version = "" if entry.binding_version is None else f"@v{entry.binding_version}"
    return DeadLetter(
        id=entry.id,
        event_id=entry.event_id,
        trigger_id=entry.binding_id,
        binding_key=f"{entry.binding_id}{version}",
        provider=entry.provider,
        kind=entry.kind,
        tenant_id=tenant if isinstance(tenant, str) else None,
        state=entry.state,
        error=entry.error,
        error_class=entry.error_class,
        attempts=len(entry.retry_history),
        moved_at_ms=moved_at_ms,
        record_id=record_id,
    )
