"""A store in one view. Every figure is a projection's: the cost does not grow with the log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harn_temporal.clock import rfc3339
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.bindings import StoredBinding
from harn_temporal.eventlog.log import EventLog, Reader, TopicHead
from harn_temporal.naming import pump_consumer
from harn_temporal.queue.reading import figures as queue_figures

WORKER_SEEN_MS = 60_000
"""A pump confirms its cursor every 15 s; one that was silent for longer is gone."""

ENDED = "terminated"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DispatcherFigures:
    """`in_flight` counts attempts that run, `retry_queue` dispatches between two attempts.

    `admitted` were started and have not begun; `waiting` are envelopes that nobody started; `lost`
    were under way, and Temporal does not know them: they count as nothing else.
    """

    in_flight: int
    retry_queue: int
    admitted: int
    waiting: int
    lost: int
    dlq: int

    def to_json(self) -> Json:
        return {
            "in_flight": self.in_flight,
            "retry_queue_depth": self.retry_queue,
            "dlq_depth": self.dlq,
            "admitted": self.admitted,
            "waiting": self.waiting,
            "lost": self.lost,
        }


@dataclass(frozen=True, slots=True)
class InboxCursor:
    """How far the pump of a package has read a topic of the inbox."""

    topic: str
    cursor: int
    last_id: int


@dataclass(frozen=True, slots=True)
class PumpView:
    """The pump of a package. `seen_at_ms` is None where none has ever run."""

    package: str
    seen_at_ms: int | None
    backlog: int
    oldest_waiting_at_ms: int | None
    outstanding: int
    cursors: tuple[InboxCursor, ...]

    def is_alive(self, now_ms: int) -> bool:
        return self.seen_at_ms is not None and now_ms - self.seen_at_ms <= WORKER_SEEN_MS

    def to_json(self, now_ms: int) -> Json:
        oldest = self.oldest_waiting_at_ms
        return {
            "package": self.package,
            "alive": self.is_alive(now_ms),
            "seen_at": None if self.seen_at_ms is None else rfc3339(self.seen_at_ms),
            "backlog": self.backlog,
            "oldest_waiting_age_ms": None if oldest is None else max(0, now_ms - oldest),
            "outstanding": self.outstanding,
            "cursors": [
                {"topic": each.topic, "cursor": each.cursor, "last_id": each.last_id}
                for each in self.cursors
            ],
        }


@dataclass(frozen=True, slots=True)
class Overview:
    """All of one moment, `now_ms` by the store's clock."""

    store_id: str
    now_ms: int
    dispatcher: DispatcherFigures
    bindings: tuple[StoredBinding, ...]
    pumps: tuple[PumpView, ...]
    queues: tuple[Json, ...]
    topics: tuple[TopicHead, ...]
    skipped: int

    def to_json(self) -> Json:
        return {
            "store_id": self.store_id,
            "at": rfc3339(self.now_ms),
            "dispatcher": self.dispatcher.to_json(),
            "bindings": [_binding_json(binding) for binding in self.bindings],
            "pumps": [pump.to_json(self.now_ms) for pump in self.pumps],
            "queues": list(self.queues),
            "topics": [{"topic": each.topic, "last_id": each.last_id} for each in self.topics],
            "skipped_records": self.skipped,
        }


async def overview(log: EventLog) -> Overview:
    def look(reader: Reader) -> Overview:
        heads = tuple(reader.topics())
        bindings = tuple(reader.bindings.states())
        packages = sorted({binding.package for binding in bindings if binding.package})
        pumps = tuple(_pump(reader, package, heads) for package in packages)
        return Overview(
            store_id=log.store_id,
            now_ms=reader.now_ms,
            dispatcher=_dispatcher(reader, sum(pump.backlog for pump in pumps)),
            bindings=tuple(each for each in bindings if each.state != ENDED),
            pumps=pumps,
            queues=tuple(queue_figures(reader)),
            topics=heads,
            skipped=len(reader.skipped()),
        )

    return await log.query(look)


def dispatcher_figures(reader: Reader) -> DispatcherFigures:
    """The figures of a store, as every process that opens it sees them."""
    packages = {binding.package for binding in reader.bindings.states() if binding.package}
    waiting = sum(reader.dispatches.count_waiting(package).count for package in packages)
    return _dispatcher(reader, waiting)


def _dispatcher(reader: Reader, waiting: int) -> DispatcherFigures:
    under_way = reader.dispatches.figures()
    return DispatcherFigures(
        in_flight=under_way.in_flight,
        retry_queue=under_way.retrying,
        admitted=under_way.admitted,
        waiting=waiting,
        lost=reader.dispatches.count_lost(),
        dlq=reader.dead_letters.depth(),
    )


def _pump(reader: Reader, package: str, heads: tuple[TopicHead, ...]) -> PumpView:
    waiting = reader.dispatches.count_waiting(package)
    consumer_id = pump_consumer(package)
    consumer = reader.consumer(topics.INBOX_ENVELOPES, consumer_id)
    return PumpView(
        package=package,
        seen_at_ms=None if consumer is None else consumer.updated_at_ms,
        backlog=waiting.count,
        oldest_waiting_at_ms=waiting.oldest_ms or None,
        outstanding=reader.dispatches.outstanding(package),
        cursors=tuple(
            InboxCursor(head.topic, reader.cursor(head.topic, consumer_id), head.last_id)
            for head in heads
            if topics.is_of(head.topic, topics.INBOX_ENVELOPES)
        ),
    )


def _binding_json(binding: StoredBinding) -> Json:
    return {
        "binding_key": binding.binding_key,
        "package": binding.package or None,
        "state": binding.state,
        "provider": binding.provider,
        "kind": binding.kind,
        "handler_kind": binding.handler_kind,
        "changed_at": rfc3339(binding.changed_at_ms),
    }
