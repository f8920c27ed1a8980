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
    """Records of one topic, in order. `end` is where the cursor goes when all are done with."""

    topic: str
    records: Sequence[Record]
    end: int

    def until(self, end: int) -> Batch:
        """The part of it up to the id `end`."""
        records = [record for record in self.records if record.event_id <= end]
        return Batch(self.topic, records, min(end, self.end))


@dataclass(frozen=True, slots=True)
class Look:
    """The inbox and what is under way, at one moment."""

    outstanding: int
    unreported: bool
    pending: bool
    """Whether some topic has records after its cursor."""
    batches: Sequence[Batch]
    definitions: Mapping[Definition, Mapping[str, Any]]


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
        outstanding = reader.dispatches.outstanding(package)
        pending = self._pending(reader)
        batches = self._take(reader, pending, min(CHUNK, self._max_outstanding - outstanding))
        self._learn(reader, batches)
        return Look(
            outstanding=outstanding,
            unreported=bool(reader.dispatches.unreported(package, 1)),
            pending=bool(pending),
            batches=batches,
            definitions=self._definitions,
        )

    def _take(
        self, reader: Reader, pending: Sequence[tuple[str, int, int]], room: int
    ) -> list[Batch]:
        batches = []
        turn = [each for each in pending if each[0] > self._last_topic]
        turn += [each for each in pending if each[0] <= self._last_topic]
        for place, (topic, cursor, head) in enumerate(turn):
            if room <= 0:
                break
            share = -(-room // (len(turn) - place))
            batch, wanted = self._scan(reader, topic, cursor, head, share)
            batches.append(batch)
            room -= wanted
            self._last_topic = topic
        return batches

    def _scan(
        self, reader: Reader, topic: str, cursor: int, head: int, share: int
    ) -> tuple[Batch, int]:
        """Records up to `share` envelopes of ours; and how many of those there are."""
        records: list[Record] = []
        wanted = size = 0
        end = cursor
        while len(records) < SCAN and wanted < share and size < SCAN_BYTES:
            found = reader.read(topic, after=end, limit=1)
            if not found:  # the rest was deleted by somebody: there is nothing to wait for
                end = max(end, head)
                break
            [record] = found
            if records and size + len(record.raw) > SCAN_BYTES:
                break
            end = record.event_id
            size += len(record.raw)
            if self._envelopes.concerns(record):
                records.append(record)
                wanted += 1
            else:
                records.append(_without_payload(record))
        return Batch(topic, records, end), wanted

    def _pending(self, reader: Reader) -> list[tuple[str, int, int]]:
        """Topics of the inbox with something after our cursor: name, cursor, last id."""
        heads = [
            head
            for prefix in (INBOX_LEGACY, TENANT_PREFIX)
            for head in reader.topics(prefix)
            if is_of(head.topic, INBOX_ENVELOPES) or is_of(head.topic, INBOX_LEGACY)
        ]
        cursors = [(head, reader.cursor(head.topic, self._consumer_id)) for head in heads]
        return [
            (head.topic, cursor, head.last_id) for head, cursor in cursors if cursor < head.last_id
        ]

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
