"""The SQLite backend: one file that Harn and other processes use at the same time."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harn_temporal.errors import StoreError, StoreUnavailableError
from harn_temporal.eventlog.file_lock import FileLock
from harn_temporal.eventlog.sql_records import SqlRecords
from harn_temporal.eventlog.sqlite_errors import error_of, is_busy, mapped
from harn_temporal.eventlog.sqlite_schema import (
    check_schema,
    migrate,
    read_store_id,
    split_script,
)
from harn_temporal.eventlog.statements import Row, load_statements

PATIENCE_SECONDS = 60.0
"""How long others may keep a store locked before we say that it cannot be reached."""

BUSY_TIMEOUT_MS = 5_000

_TABLE_PREFIX = "harn_temporal_g{generation}_"
_CACHED_STATEMENTS = 256
_DIALECTS = ("sqlite",)


class SqliteSession(SqlRecords):
    def __init__(
        self, connection: sqlite3.Connection, place: str, dialects: Sequence[str] = _DIALECTS
    ) -> None:
        self.generation = 0
        self._connection = connection
        self._place = place
        self._sources = load_statements(dialects)
        self._texts: dict[tuple[str, int], str] = {}

    def begin(self, *, write: bool) -> None:
        """Raises StoreUnavailableError when others kept the store locked for a minute."""
        with mapped(self._place):
            patiently(self._begin_writing if write else self._begin_reading)

    def commit(self) -> None:
        with mapped(self._place):
            self._connection.execute("COMMIT")

    def rollback(self) -> None:
        with mapped(self._place):
            if self._connection.in_transaction:  # SQLite ends some by itself, on a full disk say
                self._connection.execute("ROLLBACK")

    def close(self) -> None:
        with mapped(self._place):
            self._connection.close()

    def rows(self, name: str, **parameters: Any) -> list[Row]:
        try:
            return self._connection.execute(self._text(name), parameters).fetchall()
        except sqlite3.Error as error:  # not `mapped`, which costs as much as a statement
            raise error_of(error, self._place) from error

    def run(self, name: str, **parameters: Any) -> int:
        try:
            return self._connection.execute(self._text(name), parameters).rowcount
        except sqlite3.Error as error:
            raise error_of(error, self._place) from error

    def run_many(self, name: str, parameters: Sequence[Mapping[str, Any]]) -> None:
        if not parameters:
            return
        try:
            self._connection.executemany(self._text(name), parameters)
        except sqlite3.Error as error:
            raise error_of(error, self._place) from error

    def script(self, name: str) -> None:
        with mapped(self._place):
            for statement in split_script(self._text(name)):
                self._connection.execute(statement)

    def drop_some(self, generation: int, limit: int) -> bool:
        """Delete up to `limit` rows of a generation's tables; True when the tables are gone."""
        prefix = _TABLE_PREFIX.format(generation=generation)
        tables = self.rows("tables.of", prefix=prefix)
        if not tables:
            return True
        key = ", ".join(row[0] for row in self.rows("tables.key", of=tables[0][0]))
        with mapped(self._place):
            empty = self._sources["tables.empty"].replace("@table", f'"{tables[0][0]}"')
            empty = empty.replace("@key", key)
            if self._connection.execute(empty, {"limit": limit}).rowcount < limit:
                drop = self._sources["tables.drop"].replace("@table", f'"{tables[0][0]}"')
                self._connection.execute(drop)
        return False

    def _begin_writing(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def _begin_reading(self) -> None:
        """The first read decides what is seen, and is the one that others may be in the way of."""
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN")
        self._connection.execute(self._text("notes.any")).fetchone()

    def _text(self, name: str) -> str:
        text = self._texts.get((name, self.generation))
        if text is None:
            prefix = _TABLE_PREFIX.format(generation=self.generation)
            text = self._sources[name].replace("@", prefix)
            self._texts[name, self.generation] = text
        return text


class SqliteBackend:
    reads_apart = True

    def __init__(self, path: Path, dialects: Sequence[str] = _DIALECTS) -> None:
        self._path = path
        self._dialects = dialects
        self.place = str(path)
        self.store_id = ""

    def open(self) -> SqliteSession:
        return SqliteSession(self.connect(), self.place)

    def read_only(self) -> bool:
        """Whether the store is there and may not be written to: a backup on a read-only mount."""
        return self._path.exists() and not (
            os.access(self._path, os.W_OK) and os.access(self._path.parent, os.W_OK)
        )

    @contextmanager
    def rebuild_lock(self) -> Iterator[bool]:
        if self.read_only():
            raise StoreError(
                f"the EventLog {self.place} is read-only, and its projections would have to be "
                "made anew: copy it to a directory that you may write to, and open the copy"
            )
        lock = FileLock(self._beside("rebuild-lock"))
        held = lock.try_acquire()
        try:
            yield held
        finally:
            lock.release()

    def connect(self) -> sqlite3.Connection:
        return self._connect_to_read() if self.read_only() else self._connect()

    def _connect_to_read(self) -> sqlite3.Connection:
        """Writes nothing, not even a lock. What would need a write raises StoreError later on."""
        # Without the log of others who write, nobody writes, and SQLite need not look for locks.
        flags = (
            "mode=ro"
            if self._path.with_name(f"{self._path.name}-wal").exists()
            else "mode=ro&immutable=1"
        )
        with mapped(self.place):
            connection = connect(f"{self._path.absolute().as_uri()}?{flags}", uri=True)
            try:
                check_schema(connection, self.place, self._dialects)
                self.store_id = read_store_id(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def _connect(self) -> sqlite3.Connection:
        # The first switch to WAL and the first migration do not wait for each other.
        with FileLock(self._beside("init-lock")).held(PATIENCE_SECONDS), mapped(self.place):
            connection = connect(str(self._path))
            try:
                patiently(lambda: connection.execute("PRAGMA journal_mode = WAL"))
                patiently(lambda: migrate(connection, self.place, self._dialects))
                self.store_id = read_store_id(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def _beside(self, suffix: str) -> Path:
        return self._path.with_name(f"{self._path.name}.{suffix}")


class MemoryBackend:
    """SQLite in memory: the same store, for one process and as long as it lives."""

    reads_apart = False
    place = "in memory"

    def __init__(self) -> None:
        self.store_id = ""

    def open(self) -> SqliteSession:
        connection = connect(":memory:")
        with mapped(self.place):
            migrate(connection, self.place, _DIALECTS)
            self.store_id = read_store_id(connection)
        return SqliteSession(connection, self.place)

    @contextmanager
    def rebuild_lock(self) -> Iterator[bool]:
        yield True


def connect(path: str, *, uri: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path,
        uri=uri,
        timeout=BUSY_TIMEOUT_MS / 1000,
        isolation_level=None,
        check_same_thread=False,  # opened and closed by one thread, used by another
        cached_statements=_CACHED_STATEMENTS,
    )
    connection.text_factory = _lenient_text
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _lenient_text(raw: bytes) -> str:
    """Others may have written anything; what is no UTF-8 must not stop us from reading on."""
    return raw.decode("utf-8", "replace")


def patiently(act: Callable[[], object]) -> None:
    """Do `act` again while others are in the way, for a minute at most."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            act()
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            if time.monotonic() >= until:
                raise StoreUnavailableError(
                    f"others have kept the EventLog locked for {PATIENCE_SECONDS:.0f} s; "
                    "look for a process that hangs inside a transaction"
                ) from error
            time.sleep(0.01)
        else:
            return
