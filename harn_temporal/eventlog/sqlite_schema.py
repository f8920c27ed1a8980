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
    migrations = load_migrations(dialects)
    known = {number for number, _ in migrations}
    applied = _applied(connection)
    if applied - known:
        raise StoreError(
            f"the EventLog {place} has a schema made by a newer version of harn-temporal "
            f"(migration {max(applied - known)}): upgrade this one"
        )
    if applied == known:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        _refuse_strangers(connection, place)
        connection.execute(_VERSIONS)
        for number, script in migrations:
            if number not in applied:
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


def _applied(connection: sqlite3.Connection) -> set[int]:
    table = "SELECT 1 FROM sqlite_master WHERE name = 'harn_temporal_migrations'"
    if connection.execute(table).fetchone() is None:
        return set()
    rows = connection.execute("SELECT version FROM harn_temporal_migrations")
    return {version for (version,) in rows}
