"""SQL lives in `.sql` files as named statements; code knows the names only.

A file holds any number of them, each after a line `-- name: inbox.claim`. Table names that begin
with `@` are projection tables: the session puts the name of a generation in its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, Protocol

Row = tuple[Any, ...]

_NAME = re.compile(r"^-- name: ([a-z_.]+)$", re.MULTILINE)


class Statements(Protocol):
    """Runs named statements inside a transaction; parameters are given by name."""

    def rows(self, name: str, **parameters: Any) -> list[Row]: ...

    def run(self, name: str, **parameters: Any) -> int:
        """Returns the number of rows changed."""

    def run_many(self, name: str, parameters: Sequence[Mapping[str, Any]]) -> None: ...

    def script(self, name: str) -> None:
        """Several statements without parameters, one after the other."""


def load_statements(dialect: str) -> dict[str, str]:
    """All statements of a dialect (a folder of `eventlog/sql`), by name."""
    folder = resources.files("harn_temporal.eventlog").joinpath("sql", dialect)
    statements: dict[str, str] = {}
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".sql"):
            _, *parts = _NAME.split(file.read_text("utf-8"))
            statements.update(
                (name, text.strip()) for name, text in zip(parts[::2], parts[1::2], strict=True)
            )
    return statements


def load_migrations(dialect: str) -> list[tuple[int, str]]:
    """The migrations of a dialect as (number, SQL), in order: `0001_log.sql` is number 1."""
    folder = resources.files("harn_temporal.eventlog").joinpath("sql", dialect, "migrations")
    files = [file for file in folder.iterdir() if file.name.endswith(".sql")]
    return sorted((int(file.name[:4]), file.read_text("utf-8")) for file in files)
