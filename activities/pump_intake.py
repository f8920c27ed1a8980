"""What the pump finds in the inbox: a fair share of each topic, within the room that is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harn_temporal.activities.envelopes import Envelopes, binding_named
from harn_temporal.errors import StoreError
from harn_temporal.eventlog.log import Reader, Record
from harn_temporal.eventlog.topics import INBOX_ENVELOPES, INBOX_LEGACY, TENANT_PREFIX, is_of

CHUNK = 32
"""Envelopes that are admitted together, side by side."""

SCAN = 256
"""Records of a topic that are looked at in one turn, most of which may be others'."""

SCAN_BYTES = 8 * 1024 * 1024
"""Of a topic in one turn, unless its next record alone is larger."""

Definition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of one topic, in order.

    The cursor is at `start`, and goes to `end` when all are done with.
    """

    topic: str
    start: int
    records: Sequence[Record]
    end: int

    @property
    def leads_on(self) -> bool:
        return self.end > self.start

    def until(self, end: int) -> Batch:
        """The part of it up to the id `end`."""
        records = [record for record in self.records if record.event_id <= end]
        return Batch(self.topic, self.start, records, min(end, self.end))


@dataclass(frozen=True, slots=True)
class Look:
    """The inbox and what is under way, at one moment."""

    outstanding: int
    unreported: bool
    pending: bool
    """Whether some topic has records after its cursor."""
    batches: Sequence[Batch]
    begun: frozenset[tuple[str, int]]
    """Envelopes after the cursors whose dispatches are outstanding already: they need no room.

    A pump that was killed, or that found Temporal away, had admitted them and not passed them.
    """
    definitions: Mapping[Definition, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class _Pending:
    """A topic with records after our cursor. `begun` are the ids that need no room."""

    topic: str
    cursor: int
    head: int
    begun: frozenset[int]


class Intake:
    """Reads topics in turn: a round begins where the one before it ended."""

    def __init__(self, envelopes: Envelopes, consumer_id: str, max_outstanding: int) -> None:
        self._envelopes = envelopes
        self._consumer_id = consumer_id
        self._max_outstanding = max_outstanding
        self._last_topic = ""
        self._definitions: Mapping[Definition, Mapping[str, Any]] = {}

    def look(self, reader: Reader) -> Look:
        """For `query`. Reads as much as there is room for, and nothing where there is none."""
        package = self._envelopes.package
        places = reader.dispatches.outstanding_places(package)
        pending = self._pending(reader, places)
        batches = self._take(reader, pending, min(CHUNK, self._max_outstanding - len(places)))
        self._learn(reader, batches)
        return Look(
            outstanding=len(places),
            unreported=bool(reader.dispatches.unreported(package, 1)),
            pending=bool(pending),
            batches=batches,
            begun=frozenset((each.topic, event_id) for each in pending for event_id in each.begun),
            definitions=self._definitions,
        )

    def _take(self, reader: Reader, pending: Sequence[_Pending], room: int) -> list[Batch]:
        batches = []
        turn = [each for each in pending if each.topic > self._last_topic]
        turn += [each for each in pending if each.topic <= self._last_topic]
        for place, each in enumerate(turn):
            share = -(-max(0, room) // (len(turn) - place))
            if not share and not each.begun:
                continue
            batch, wanted = self._scan(reader, each, share)
            batches.append(batch)
            if wanted:
                room -= wanted
                self._last_topic = each.topic
        return batches

    def _scan(self, reader: Reader, pending: _Pending, share: int) -> tuple[Batch, int]:
        """Records up to `share` envelopes of ours that take room; and how many those are."""
        last_begun = max(pending.begun, default=0)
        records: list[Record] = []
        wanted = size = 0
        end = pending.cursor
        while len(records) < SCAN and size < SCAN_BYTES and (wanted < share or end < last_begun):
            found = reader.read(pending.topic, after=end, limit=1)
            if not found:  # the rest was deleted by somebody: there is nothing to wait for
                end = max(end, pending.head)
                break
            [record] = found
            if records and size + len(record.raw) > SCAN_BYTES:
                break
            end = record.event_id
            size += len(record.raw)
            if self._envelopes.concerns(record):
                records.append(record)
                wanted += record.event_id not in pending.begun
            else:
                records.append(_without_payload(record))
        return Batch(pending.topic, pending.cursor, records, end), wanted

    def _pending(self, reader: Reader, outstanding: Sequence[tuple[str, int]]) -> list[_Pending]:
        """Topics of the inbox with something after our cursor."""
        heads = [
            head
            for prefix in (INBOX_LEGACY, TENANT_PREFIX)
            for head in reader.topics(prefix)
            if is_of(head.topic, INBOX_ENVELOPES) or is_of(head.topic, INBOX_LEGACY)
        ]
        found = []
        for head in heads:
            cursor = reader.cursor(head.topic, self._consumer_id)
            if cursor < head.last_id:
                begun = (
                    event_id
                    for topic, event_id in outstanding
                    if topic == head.topic and event_id > cursor
                )
                found.append(_Pending(head.topic, cursor, head.last_id, frozenset(begun)))
        return found

    def _learn(self, reader: Reader, batches: Sequence[Batch]) -> None:
        """Remember the definitions that the envelopes name; they never change."""
        for batch in batches:
            for record in batch.records:
                if not self._envelopes.concerns(record):
                    continue
                try:
                    trigger_id, version = binding_named(record)
                except StoreError:
                    continue  # malformed, as `requests` will say
                if trigger_id is None or version is None:
                    continue
                named = trigger_id, version
                if named not in self._definitions:
                    found = reader.bindings.definition(*named)
                    if found is not None:
                        # A look that was given keeps its own: it is used in another thread.
                        self._definitions = {**self._definitions, named: found}


def _without_payload(record: Record) -> Record:
    """What is not ours is only passed by; its payload need not stay in memory."""
    return Record(
        record.topic, record.event_id, record.kind, b"", record.headers, record.occurred_at_ms
    )
