"""What SQLite says, as errors of ours, told apart by its codes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from harn_temporal.errors import HarnTemporalError, StoreError, StoreUnavailableError

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}

_UNAVAILABLE = {
    sqlite3.SQLITE_FULL: "its disk is full; make room, nothing that was appended is lost",
    sqlite3.SQLITE_IOERR: "its disk failed to read or write; is it full?",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened; does its directory exist, may you use it?",
    sqlite3.SQLITE_NOMEM: "there is no memory left",
    sqlite3.SQLITE_INTERRUPT: "the work was interrupted",
}

_UNUSABLE = {
    sqlite3.SQLITE_READONLY: "it is read-only; make the file and its directory writable, "
    "or copy it to a directory that is, and name that one with --state-dir",
    sqlite3.SQLITE_PERM: "access is not permitted",
    sqlite3.SQLITE_AUTH: "access is not permitted",
    sqlite3.SQLITE_NOTADB: "it is not a SQLite database; name another file, or move this one away",
    sqlite3.SQLITE_CORRUPT: "it is damaged; restore it, or recover it with the `sqlite3` program",
    sqlite3.SQLITE_TOOBIG: "a record is larger than SQLite can hold",
}


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection is in the way, which passes."""
    return _primary(error) in _BUSY


@contextmanager
def mapped(place: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise error_of(error, place) from error


def error_of(error: sqlite3.Error, place: str) -> HarnTemporalError:
    """What to raise in place of an error of SQLite."""
    code = _primary(error)
    if code in _BUSY:
        return StoreUnavailableError(f"the EventLog {place} is busy: others keep it locked")
    if code in _UNAVAILABLE:
        return StoreUnavailableError(f"the EventLog {place} cannot be used: {_UNAVAILABLE[code]}")
    if code in _UNUSABLE:
        return StoreError(f"the EventLog {place} cannot be used: {_UNUSABLE[code]}")
    return StoreError(f"the EventLog {place} answered: {error}")


def _primary(error: sqlite3.Error) -> int:
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF
