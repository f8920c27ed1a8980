"""The file backend: records are lines of JSON, everything else lies in a SQLite side file.

A transaction commits in the side file, which then holds the lines that are still to be written;
they are written under the same lock. Whoever takes the lock after a crash writes what is left.
A side file that is lost, or is not of these lines, is made anew from the lines.
"""

from __future__ import annotations

import itertools
import secrets
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from harn_temporal.errors import StoreError
from harn_temporal.eventlog import json_lines
from harn_temporal.eventlog.file_lock import FileLock
from harn_temporal.eventlog.json_lines import mapped
from harn_temporal.eventlog.records import ConsumerCursor, Record
from harn_temporal.eventlog.sqlite import PATIENCE_SECONDS, SqliteBackend, SqliteSession

SIDE_FILE = "projections.sqlite"
_DIALECTS = ("sqlite", "file")


class FileSession(SqliteSession):
    def __init__(self, connection: sqlite3.Connection, directory: Path) -> None:
        super().__init__(connection, str(directory / SIDE_FILE), _DIALECTS)
        self._directory = directory
        self._lock = FileLock(directory / "lock")

    def begin(self, *, write: bool) -> None:
        if not write:
            super().begin(write=False)
            return
        self._lock.acquire(PATIENCE_SECONDS)
        try:
            self._finish_writing()
            super().begin(write=True)
        except BaseException:
            self._lock.release()
            raise

    def commit(self) -> None:
        super().commit()
        try:
            self._finish_writing()
        finally:
            self._lock.release()

    def rollback(self) -> None:
        try:
            super().rollback()
        finally:
            self._lock.release()

    def insert(self, records: Sequence[Record]) -> None:
        with mapped(self._directory):
            by_topic = sorted(records, key=lambda record: record.topic)
            for topic, group in itertools.groupby(by_topic, key=lambda record: record.topic):
                self._insert(topic, list(group))

    def read(self, topic: str, after: int, limit: int) -> list[Record]:
        offsets = self.rows("offsets.after", topic=topic, after=after, limit=limit)
        rows = self.rows("unwritten.of", topic=topic) if offsets else []
        unwritten: dict[int, bytes] = {row[0]: row[1] for row in rows}
        records: list[Record] = []
        with mapped(self._directory):
            path = json_lines.topic_path(self._directory, topic)
            written = [row for row in offsets if row[0] not in unwritten]
            if written:
                with path.open("rb") as file:
                    for event_id, offset in written:
                        file.seek(offset)
                        records.append(self._expect(topic, event_id, file.readline()))
        waiting = [row[0] for row in offsets if row[0] in unwritten]
        records.extend(self._expect(topic, event_id, unwritten[event_id]) for event_id in waiting)
        return records

    def one(self, topic: str, event_id: int) -> Record | None:
        records = self.read(topic, event_id - 1, 1)
        return records[0] if records and records[0].event_id == event_id else None

    def nearest(self, topic: str) -> Record | None:
        return self.one(topic, self.rows("offsets.last", topic=topic)[0][0])

    def consumer(self, topic: str, consumer_id: str) -> ConsumerCursor | None:
        with mapped(self._directory):
            told = json_lines.read_cursor(self._directory, topic, consumer_id)
        known = super().consumer(topic, consumer_id)
        if told is None or known is None:
            return told or known
        return ConsumerCursor(
            max(told.cursor, known.cursor), max(told.updated_at_ms, known.updated_at_ms)
        )

    def ack(self, topic: str, consumer_id: str, cursor: int, now_ms: int) -> None:
        known = self.consumer(topic, consumer_id)
        super().ack(topic, consumer_id, max(cursor, known.cursor if known else 0), now_ms)
        self.run("cursors.mark", topic=topic, consumer_id=consumer_id)

    def notice(self, limit: int) -> bool:
        for topic, seen in self._grown().items():
            if limit <= 0:
                return True
            limit -= self._notice(topic, seen, limit)
        return limit <= 0

    def behind(self) -> bool:
        return super().behind() or bool(self.rows("unwritten.any")) or bool(self._grown())

    def position(self) -> int:
        with mapped(self._directory):
            return sum(json_lines.sizes(self._directory).values())

    def forget_changed_lines(self) -> None:
        """Where the side file is not of these lines, empty it, to be made anew from them."""
        try:
            self.begin(write=True)
            self._grown()
        except _LinesChangedError:
            self.rollback()
            self._lock.acquire(PATIENCE_SECONDS)
            super().begin(write=True)
            self.script("files.forget")
            super().commit()
        finally:
            self.rollback()

    def _insert(self, topic: str, records: list[Record]) -> None:
        path = json_lines.topic_path(self._directory, topic)
        offset = self.rows("files.size", topic=topic)[0][0]
        gap = b"\n" if not self._unwritten(topic) and json_lines.ends_open(path, offset) else b""
        for record in records:
            line = gap + json_lines.line_of(record)
            self.run(
                "unwritten.insert",
                topic=topic,
                event_id=record.event_id,
                offset=offset,
                line=line,
            )
            self.run(
                "offsets.insert",
                topic=topic,
                event_id=record.event_id,
                offset=offset + len(gap),
            )
            offset += len(line)
            gap = b""
        self.run("files.grow", topic=topic, size=offset, seen=offset)

    def _unwritten(self, topic: str) -> bool:
        return bool(self.rows("unwritten.of", topic=topic))

    def _finish_writing(self) -> None:
        """Write what is committed; then, and not before, forget that it is to be written."""
        if not self.rows("unwritten.any"):
            return
        with mapped(self._directory):
            lines = self.rows("unwritten.all")
            for topic, group in itertools.groupby(sorted(lines), key=lambda row: row[0]):
                rows = list(group)
                path = json_lines.topic_path(self._directory, topic)
                if not json_lines.write_at(path, rows[0][1], b"".join(row[2] for row in rows)):
                    raise _LinesChangedError(_changed(path))
            for topic, consumer_id, *cursor in self.rows("cursors.unwritten"):
                json_lines.write_cursor(
                    self._directory, topic, consumer_id, ConsumerCursor(*cursor)
                )
        super().begin(write=True)
        self.run("unwritten.clear")
        self.run("cursors.clear")
        super().commit()

    def _grown(self) -> dict[str, int]:
        """The topics whose files have bytes that we did not see, and how many they have now."""
        with mapped(self._directory):
            found = json_lines.sizes(self._directory)
        known = {topic: (size, seen) for topic, size, seen in self.rows("files.all")}
        if not self.rows("unwritten.any"):
            for topic, (size, _) in known.items():
                if found.get(topic, 0) < size:
                    path = json_lines.topic_path(self._directory, topic)
                    raise _LinesChangedError(_changed(path))
        return {t: size for t, size in found.items() if size != known.get(t, (0, 0))[1]}

    def _notice(self, topic: str, seen: int, limit: int) -> int:
        """Note up to `limit` lines that others appended; returns how many there were."""
        path = json_lines.topic_path(self._directory, topic)
        start = end = self.rows("files.size", topic=topic)[0][0]
        with mapped(self._directory):
            lines = list(json_lines.scan(path, start, limit))
        for line in lines:
            end = line.end
            if line.event_id is not None:
                position = {"topic": topic, "event_id": line.event_id}
                if self.run("offsets.insert", **position, offset=line.offset):
                    self.run("notes.add", **position)
        self.run("files.grow", topic=topic, size=end, seen=end if len(lines) == limit else seen)
        return len(lines)

    def _expect(self, topic: str, event_id: int, line: bytes) -> Record:
        record = json_lines.record_of(topic, line)
        if record is None or record.event_id != event_id:
            raise _LinesChangedError(_changed(json_lines.topic_path(self._directory, topic)))
        return record


class FileBackend(SqliteBackend):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory / SIDE_FILE, _DIALECTS)
        self._directory = directory

    def open(self) -> FileSession:
        session = FileSession(self.connect(), self._directory)
        if self.read_only():
            self.store_id = self._written_store_id()
            return session
        try:
            session.forget_changed_lines()
            self.store_id = self._read_store_id()
        except BaseException:
            session.close()
            raise
        return session

    @property
    def _store_id_path(self) -> Path:
        return self._directory / "store-id"

    def _read_store_id(self) -> str:
        """Outlives the side file: Temporal knows the store's workflows by it."""
        path = self._store_id_path
        with mapped(self._directory), FileLock(self._beside("init-lock")).held(PATIENCE_SECONDS):
            if not path.exists():
                fresh = path.with_suffix(".tmp")
                fresh.write_text(secrets.token_hex(6))
                fresh.replace(path)
            return self._written_store_id()

    def _written_store_id(self) -> str:
        with mapped(self._directory):
            return self._store_id_path.read_text().strip()


class _LinesChangedError(StoreError):
    """The lines are not those that the side file knows."""


def _changed(path: Path) -> str:
    return (
        f"something changed lines of {path} that were read before; "
        "open the EventLog again: what is known of it is then made anew from the lines"
    )
