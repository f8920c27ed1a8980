"""What runs inside a transaction of a store: reading, appending, acknowledging."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from harn_temporal.canonical import clean, clean_text, encode
from harn_temporal.errors import NotJsonError, StoreError
from harn_temporal.eventlog.bindings import BindingsTables
from harn_temporal.eventlog.cancel_requests import CancelRequestTables
from harn_temporal.eventlog.circuits import CircuitTables
from harn_temporal.eventlog.dead_letters import DeadLetterTables
from harn_temporal.eventlog.dispatches import DispatchTables
from harn_temporal.eventlog.event_index import EventIndex
from harn_temporal.eventlog.gate_tables import GateStore
from harn_temporal.eventlog.inbox import InboxTables
from harn_temporal.eventlog.outbox import OutboxTables
from harn_temporal.eventlog.projections import Skipped, fold_all
from harn_temporal.eventlog.provenance import sealed_headers, stored_hash
from harn_temporal.eventlog.queue_tables import QueueStore
from harn_temporal.eventlog.records import Append, Appended, ConsumerCursor, Record, TopicHead
from harn_temporal.eventlog.session import Session
from harn_temporal.eventlog.tallies import TallyTables
from harn_temporal.eventlog.topics import is_topic
from harn_temporal.headers import IDEMPOTENCY_KEY, PROVENANCE_RECORD_HASH

Tails = dict[str, tuple[int, str]]
"""Of topics: the last id, and the hash of that record."""

HIGHEST_ID = 2**63 - 1
"""What SQL's integers, and so Harn's, can count to."""


class StoreReader:
    def __init__(self, session: Session, now_ms: int) -> None:
        self._session = session
        self._now_ms = now_ms
        self._inbox = InboxTables(session, now_ms)
        self._bindings = BindingsTables(session)
        self._dispatches = DispatchTables(session)
        self._cancel_requests = CancelRequestTables(session)
        self._dead_letters = DeadLetterTables(session)
        self._queues = QueueStore(session, now_ms)
        self._tallies = TallyTables(session)
        self._gates = GateStore(session, now_ms)
        self._circuits = CircuitTables(session)
        self._event_index = EventIndex(session)
        self._outbox = OutboxTables(session)

    @property
    def now_ms(self) -> int:
        return self._now_ms

    @property
    def inbox(self) -> InboxTables:
        return self._inbox

    @property
    def bindings(self) -> BindingsTables:
        return self._bindings

    @property
    def dispatches(self) -> DispatchTables:
        return self._dispatches

    @property
    def cancel_requests(self) -> CancelRequestTables:
        return self._cancel_requests

    @property
    def dead_letters(self) -> DeadLetterTables:
        return self._dead_letters

    @property
    def queues(self) -> QueueStore:
        return self._queues

    @property
    def gates(self) -> GateStore:
        return self._gates

    @property
    def circuits(self) -> CircuitTables:
        return self._circuits

    @property
    def tallies(self) -> TallyTables:
        return self._tallies

    @property
    def event_index(self) -> EventIndex:
        return self._event_index

    @property
    def outbox(self) -> OutboxTables:
        return self._outbox

    def read(self, topic: str, after: int = 0, limit: int = 1000) -> list[Record]:
        return self._session.read(_checked(topic), after, limit)

    def head(self, topic: str) -> int:
        return self._session.head(_checked(topic))

    def topics(self, prefix: str = "") -> list[TopicHead]:
        return self._session.topics(prefix)

    def cursor(self, topic: str, consumer_id: str) -> int:
        found = self.consumer(topic, consumer_id)
        return found.cursor if found else 0

    def consumer(self, topic: str, consumer_id: str) -> ConsumerCursor | None:
        return self._session.consumer(_checked(topic), clean_text(consumer_id))

    def written(self, key: str) -> tuple[Record, ...]:
        written: list[Record] = []
        while True:
            value = f"{clean_text(key)}/{len(written)}"
            rows = self._session.rows("keys.find", key=IDEMPOTENCY_KEY, value=value)
            record = self._session.one(*rows[0]) if rows else None
            if record is None:
                return tuple(written)
            written.append(record)

    def skipped(self) -> list[Skipped]:
        return [Skipped(*row) for row in self._session.rows("skipped.list")]


class StoreTransaction(StoreReader):
    """`known` is what the `tails` of committed transactions said; ours count after commit."""

    def __init__(self, session: Session, now_ms: int, known: Tails) -> None:
        super().__init__(session, now_ms)
        self.tails: Tails = {}
        self.appended: list[Record] = []
        self._known = known

    def append(self, records: Sequence[Append], key: str | None = None) -> Appended:
        if key is not None:
            key = clean_text(key)
            written = self.written(key)
            if written:
                return Appended(written, fresh=False)
        if not records:
            return Appended((), fresh=True)
        sealed = [
            self._seal(item, None if key is None else f"{key}/{place}")
            for place, item in enumerate(records)
        ]
        self._session.insert(sealed)
        self._session.run_many(
            "heads.raise",
            [
                {"topic": topic, "last_id": self.tails[topic][0]}
                for topic in sorted({record.topic for record in sealed})
            ],
        )
        if key is not None:
            self._session.run_many("keys.insert", [_key_row(record) for record in sealed])
        fold_all(self._session, sealed)
        self.appended += sealed
        self._session.run("notes.clear_all")  # they are ours: what others left is folded before
        return Appended(tuple(sealed), fresh=True)

    def ack(self, topic: str, consumer_id: str, cursor: int) -> None:
        self._session.ack(_checked(topic), clean_text(consumer_id), cursor, self._now_ms)

    def _seal(self, item: Append, key: str | None) -> Record:
        topic = _checked(item.topic)
        last_id, last_hash = self._tail(topic)
        if last_id >= HIGHEST_ID:
            raise StoreError(
                f"topic {topic} takes no more records: its last one has id {last_id}, the highest "
                "there is, which another program must have given it. Remove that record: "
                'docs/operations.md says how, at "When something is wrong"'
            )
        kind = clean_text(item.kind)
        payload, raw = _encoded(item)
        occurred_at_ms = self._now_ms if item.occurred_at_ms is None else item.occurred_at_ms
        headers = _clean_headers(item.headers)
        if key is not None:
            headers[IDEMPOTENCY_KEY] = key
        headers = sealed_headers(
            topic=topic,
            event_id=last_id + 1,
            kind=kind,
            raw=raw,
            headers=headers,
            occurred_at_ms=occurred_at_ms,
            prev_hash=last_hash or None,
        )
        self.tails[topic] = last_id + 1, headers[PROVENANCE_RECORD_HASH]
        return Record(topic, last_id + 1, kind, raw, headers, occurred_at_ms, payload)

    def _tail(self, topic: str) -> tuple[int, str]:
        if topic in self.tails:
            return self.tails[topic]
        head = self._session.head(topic)
        known = self._known.get(topic)
        if known is not None and known[0] == head:
            return known
        nearest = self._session.nearest(topic)
        return head, stored_hash(nearest) if nearest else ""


def _encoded(item: Append) -> tuple[JsonValue, bytes]:
    try:
        payload = clean(item.payload)
        return payload, encode(payload)
    except NotJsonError as error:
        raise NotJsonError(f"the payload of {item.kind} for topic {item.topic}: {error}") from error


def _clean_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {clean_text(name): clean_text(value) for name, value in headers.items()}


def _key_row(record: Record) -> dict[str, str | int]:
    return {
        "topic": record.topic,
        "key": IDEMPOTENCY_KEY,
        "value": record.headers[IDEMPOTENCY_KEY],
        "event_id": record.event_id,
    }


def _checked(topic: str) -> str:
    if not is_topic(topic):
        raise StoreError(f"{topic!r} is no topic: 1 or more of A-Z a-z 0-9 . _ - are allowed")
    return topic
