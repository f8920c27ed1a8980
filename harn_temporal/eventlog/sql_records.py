"""Records that lie in SQL tables, for every session that knows the statements of `log.sql`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from harn_temporal.canonical import encode
from harn_temporal.eventlog.records import ConsumerCursor, Record, TopicHead, headers_of
from harn_temporal.eventlog.statements import Row, Statements


class SqlRecords(Statements):
    def insert(self, records: Sequence[Record]) -> None:
        self.run_many(
            "events.insert",
            [
                {
                    "topic": record.topic,
                    "event_id": record.event_id,
                    "kind": record.kind,
                    "payload": record.raw,
                    "headers": encode(record.headers).decode(),
                    "occurred_at_ms": record.occurred_at_ms,
                }
                for record in records
            ],
        )

    def read(self, topic: str, after: int, limit: int) -> list[Record]:
        rows = self.rows("events.read", topic=topic, after=after, limit=limit)
        return [record_of(row) for row in rows]

    def one(self, topic: str, event_id: int) -> Record | None:
        rows = self.rows("events.one", topic=topic, event_id=event_id)
        return record_of(rows[0]) if rows else None

    def nearest(self, topic: str) -> Record | None:
        rows = self.rows("events.nearest", topic=topic)
        return record_of(rows[0]) if rows else None

    def head(self, topic: str) -> int:
        return int(self.rows("heads.one", topic=topic)[0][0])

    def topics(self, prefix: str) -> list[TopicHead]:
        return [TopicHead(*row) for row in self.rows("heads.all", prefix=prefix)]

    def consumer(self, topic: str, consumer_id: str) -> ConsumerCursor | None:
        rows = self.rows("consumers.one", topic=topic, consumer_id=consumer_id)
        return ConsumerCursor(*rows[0]) if rows else None

    def ack(self, topic: str, consumer_id: str, cursor: int, now_ms: int) -> None:
        self.run(
            "consumers.ack", topic=topic, consumer_id=consumer_id, cursor=cursor, now_ms=now_ms
        )

    def notice(self, limit: int) -> bool:  # noqa: ARG002 - a trigger on the table notes each row
        return False

    def behind(self) -> bool:
        return bool(self.rows("notes.any"))

    def position(self) -> int:
        return int(self.rows("events.position")[0][0])


def record_of(row: Row) -> Record:
    """SQLite holds any type in any column, and others may have written anything."""
    topic, event_id, kind, payload, headers, occurred_at_ms = row
    try:
        found = json.loads(headers)
    except (ValueError, TypeError, RecursionError):  # others may have written anything
        found = {}
    return Record(
        topic=topic,
        event_id=event_id,
        kind=_bytes_of(kind).decode("utf-8", "replace"),
        raw=_bytes_of(payload),
        headers=headers_of(found),
        occurred_at_ms=occurred_at_ms if isinstance(occurred_at_ms, int) else 0,
    )


def _bytes_of(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()
