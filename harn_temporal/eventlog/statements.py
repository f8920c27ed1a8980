"""SQL lives in `.sql` files as named statements; code knows the names only.

A file holds any number of them, each after a line `-- name: inbox.claim`. Table names that begin
with `@` are projection tables: the session puts the name of a generation in its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
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


def load_statements(dialects: Sequence[str]) -> dict[str, str]:
    """All statements of dialects (folders of `eventlog/sql`), by name."""
    statements: dict[str, str] = {}
    for file in _files(dialects):
        _, *parts = _NAME.split(file.read_text("utf-8"))
        statements.update(
            (name, text.strip()) for name, text in zip(parts[::2], parts[1::2], strict=True)
        )
    return statements


def load_migrations(dialects: Sequence[str]) -> list[tuple[int, str]]:
    """The migrations of dialects as (number, SQL), in order: `0001_log.sql` is number 1."""
    files = _files(dialects, "migrations")
    return sorted((int(file.name[:4]), file.read_text("utf-8")) for file in files)


def _files(dialects: Sequence[str], *below: str) -> Iterator[Traversable]:
    for dialect in dialects:
        folder = resources.files("harn_temporal.eventlog").joinpath("sql", dialect, *below)
        yield from (file for file in folder.iterdir() if file.name.endswith(".sql"))
