"""Bringing a SQLite file to the schema that this version knows."""

from __future__ import annotations

import re
import secrets
import sqlite3
from collections.abc import Iterator, Sequence

from harn_temporal.errors import StoreError
from harn_temporal.eventlog.statements import load_migrations

_VERSIONS = """
CREATE TABLE IF NOT EXISTS harn_temporal_migrations (
  version INTEGER NOT NULL PRIMARY KEY,
  applied_at TEXT NOT NULL
)
"""
_SHARED = {
    "topic_heads": {"topic", "last_id"},
    "events": {"topic", "event_id", "kind", "payload", "headers", "occurred_at_ms"},
    "consumers": {"topic", "consumer_id", "cursor", "updated_at_ms"},
    "event_idempotency_keys": {"topic", "key", "value", "event_id"},
}
"""Harn's tables, which are there before ours in a file that Harn made."""
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)


def migrate(connection: sqlite3.Connection, place: str, dialects: Sequence[str]) -> None:
    """Apply what is missing, all or nothing. Raises StoreError for a newer schema than ours."""
    missing, newer = _compared(connection, dialects)
    if newer:
        raise StoreError(_made_by_newer(place, max(newer)))
    if not missing:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        _refuse_strangers(connection, place)
        connection.execute(_VERSIONS)
        for number, script in load_migrations(dialects):
            if number in missing:
                for statement in split_script(script):
                    connection.execute(statement)
                connection.execute(
                    "INSERT INTO harn_temporal_migrations VALUES (?, datetime('now'))", (number,)
                )
        connection.execute(
            "INSERT INTO harn_temporal_store VALUES ('id', ?) ON CONFLICT DO NOTHING",
            (secrets.token_hex(6),),
        )
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def check_schema(connection: sqlite3.Connection, place: str, dialects: Sequence[str]) -> None:
    """Raises StoreError for a store that is only read and has another schema than ours."""
    missing, newer = _compared(connection, dialects)
    if newer:
        raise StoreError(_made_by_newer(place, max(newer)))
    if missing:
        raise StoreError(
            f"the EventLog {place} is read-only, and its schema is not that of this version: "
            "copy it to a directory that you may write to, and open the copy"
        )


def read_store_id(connection: sqlite3.Connection) -> str:
    row = connection.execute("SELECT value FROM harn_temporal_store WHERE name = 'id'").fetchone()
    return str(row[0])


def split_script(script: str) -> Iterator[str]:
    """The statements of a script; a trigger's body counts as part of its statement."""
    statement = ""
    for line in _COMMENT.sub("", script).splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement


def _refuse_strangers(connection: sqlite3.Connection, place: str) -> None:
    """Leave the database of another program as it is, though a table of it is called like ours."""
    for table, expected in _SHARED.items():
        columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        if columns and not columns >= expected:
            raise StoreError(
                f"the EventLog {place} cannot be used: its table {table} is another program's; "
                "name another file"
            )


def _compared(connection: sqlite3.Connection, dialects: Sequence[str]) -> tuple[set[int], set[int]]:
    """The migrations that the file lacks, and those that we do not know."""
    known = {number for number, _ in load_migrations(dialects)}
    applied = _applied(connection)
    return known - applied, applied - known


def _made_by_newer(place: str, migration: int) -> str:
    return (
        f"the EventLog {place} has a schema made by a newer version of harn-temporal "
        f"(migration {migration}): upgrade this one"
    )


def _applied(connection: sqlite3.Connection) -> set[int]:
    table = "SELECT 1 FROM sqlite_master WHERE name = 'harn_temporal_migrations'"
    if connection.execute(table).fetchone() is None:
        return set()
    rows = connection.execute("SELECT version FROM harn_temporal_migrations")
    return {version for (version,) in rows}
