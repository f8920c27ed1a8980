"""Labs: one for each backend, with what tests do to a store behind its back.

A backend joins the suite with one more lab in LABS.
"""

from __future__ import annotations

import json
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.store import Store

START_MS = 1_700_000_000_000


class HandClock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.now_ms = START_MS

    def __call__(self) -> int:
        return self.now_ms


class Lab(ABC):
    """A store, opened as often as a test likes, and others that use it at the same time."""

    kind: str
    shared = True
    """Whether it can be opened twice, and outlives its last user."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clock = HandClock()
        self._opened: list[Store] = []

    @property
    def settings(self) -> StoreSettings:
        environ = {"HARN_EVENT_LOG_BACKEND": self.kind}
        return StoreSettings.from_environment(self.directory, environ)

    async def open(self) -> Store:
        log = await open_event_log(self.settings, self.clock)
        assert isinstance(log, Store)
        self._opened.append(log)
        return log

    async def close(self) -> None:
        for log in self._opened:
            await log.close()

    @abstractmethod
    async def foreign(
        self, topic: str, kind: str, payload: Any, headers: Mapping[str, str] | None = None
    ) -> int:
        """Append as another program does, without our code; `payload` may be bytes."""

    @abstractmethod
    async def alter(self, topic: str, event_id: int, payload: Any) -> None:
        """Change the payload of a record that was appended."""

    @abstractmethod
    async def remove(self, topic: str, event_id: int) -> None: ...


class SqliteLab(Lab):
    kind = "sqlite"

    async def foreign(
        self, topic: str, kind: str, payload: Any, headers: Mapping[str, str] | None = None
    ) -> int:
        with self.connection() as connection:
            return append_row(connection, topic, kind, payload, headers)

    async def alter(self, topic: str, event_id: int, payload: Any) -> None:
        with self.connection() as connection:
            alter_row(connection, topic, event_id, payload)

    async def remove(self, topic: str, event_id: int) -> None:
        with self.connection() as connection:
            remove_row(connection, topic, event_id)

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        path = self.settings.path
        assert path is not None
        with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")


class MemoryLab(Lab):
    kind = "memory"
    shared = False

    async def foreign(
        self, topic: str, kind: str, payload: Any, headers: Mapping[str, str] | None = None
    ) -> int:
        return await self._behind(lambda c: append_row(c, topic, kind, payload, headers))

    async def alter(self, topic: str, event_id: int, payload: Any) -> None:
        await self._behind(lambda c: alter_row(c, topic, event_id, payload))

    async def remove(self, topic: str, event_id: int) -> None:
        await self._behind(lambda c: remove_row(c, topic, event_id))

    async def _behind(self, act: Callable[[sqlite3.Connection], Any]) -> Any:
        log = self._opened[-1]
        return await log._in_writer(lambda: act(log._writer._connection))


class FileLab(Lab):
    kind = "file"

    async def foreign(
        self, topic: str, kind: str, payload: Any, headers: Mapping[str, str] | None = None
    ) -> int:
        raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        path = self.path(topic)
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_bytes().splitlines() if path.exists() else []
        event_id = json.loads(lines[-1])["id"] + 1 if lines else 1
        head = {"kind": kind, "headers": headers or {}, "occurred_at_ms": START_MS}
        event = json.dumps(head)[:-1].encode() + b', "payload": ' + raw + b"}"
        with path.open("ab") as file:
            file.write(b'{"id": %d, "event": %b}\n' % (event_id, event))
        return event_id

    async def alter(self, topic: str, event_id: int, payload: Any) -> None:
        """Of the same length, so that no line moves."""
        lines = self.lines(topic)
        line = json.loads(lines[event_id - 1])
        line["event"]["payload"] = payload
        altered = json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode()
        assert len(altered) <= len(lines[event_id - 1]), "keep the length"
        lines[event_id - 1] = altered.ljust(len(lines[event_id - 1]))
        self.path(topic).write_bytes(b"".join(line + b"\n" for line in lines))

    async def remove(self, topic: str, event_id: int) -> None:
        """And whoever does so takes the side file away as well, which knows the lines."""
        for log in self._opened:
            await log.close()
        lines = self.lines(topic)
        del lines[event_id - 1]
        self.path(topic).write_bytes(b"".join(line + b"\n" for line in lines))
        for file in self.directory.rglob("projections.sqlite*"):
            file.unlink()
        await self.open()

    def path(self, topic: str) -> Path:
        return self.directory / "events" / "topics" / f"{topic}.jsonl"

    def lines(self, topic: str) -> list[bytes]:
        return self.path(topic).read_bytes().splitlines()


LABS: tuple[type[Lab], ...] = (SqliteLab, MemoryLab, FileLab)


def append_row(
    connection: sqlite3.Connection,
    topic: str,
    kind: str,
    payload: Any,
    headers: Mapping[str, str] | None,
) -> int:
    raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    connection.execute(
        "INSERT INTO topic_heads VALUES (?, 1) ON CONFLICT DO UPDATE SET last_id = last_id + 1",
        (topic,),
    )
    query = "SELECT last_id FROM topic_heads WHERE topic = ?"
    (event_id,) = connection.execute(query, (topic,)).fetchone()
    connection.execute(
        "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)",
        (topic, event_id, kind, raw, json.dumps(headers or {}), START_MS),
    )
    return int(event_id)


def alter_row(connection: sqlite3.Connection, topic: str, event_id: int, payload: Any) -> None:
    connection.execute(
        "UPDATE events SET payload = ? WHERE topic = ? AND event_id = ?",
        (json.dumps(payload).encode(), topic, event_id),
    )


def remove_row(connection: sqlite3.Connection, topic: str, event_id: int) -> None:
    connection.execute("DELETE FROM events WHERE topic = ? AND event_id = ?", (topic, event_id))


@pytest.fixture(params=LABS, ids=lambda lab: lab.kind)
def lab_type(request: pytest.FixtureRequest) -> type[Lab]:
    found: type[Lab] = request.param
    return found


@pytest.fixture
async def lab(lab_type: type[Lab], tmp_path: Path) -> AsyncIterator[Lab]:
    made = lab_type(tmp_path)
    yield made
    await made.close()


@pytest.fixture
async def log(lab: Lab) -> Store:
    return await lab.open()


@pytest.fixture
async def sqlite_lab(tmp_path: Path) -> AsyncIterator[SqliteLab]:
    made = SqliteLab(tmp_path)
    yield made
    await made.close()


@pytest.fixture
async def file_lab(tmp_path: Path) -> AsyncIterator[FileLab]:
    made = FileLab(tmp_path)
    yield made
    await made.close()
