"""Harn's files: a line of JSON for each record, a file of JSON for each consumer's cursor."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harn_temporal.canonical import clean_text, encode
from harn_temporal.errors import NotJsonError, StoreError, StoreUnavailableError
from harn_temporal.eventlog.records import ConsumerCursor, Record, headers_of
from harn_temporal.eventlog.topics import is_topic, safe_topic

_SUFFIX = ".jsonl"
_EVENT_IDS = range(1, 2**63)


@dataclass(frozen=True, slots=True)
class Line:
    """A complete line as it was found; `event_id` is None where it holds no record."""

    offset: int
    end: int
    event_id: int | None


@contextmanager
def mapped(place: Path) -> Iterator[None]:
    """OSError as errors of ours."""
    try:
        yield
    except PermissionError as error:
        raise StoreError(
            f"the EventLog {place} cannot be used: {error.strerror}: {error.filename}; "
            "make it readable and writable"
        ) from error
    except OSError as error:
        raise StoreUnavailableError(
            f"the EventLog {place} cannot be used: {error.strerror or error}"
        ) from error


def topic_path(directory: Path, topic: str) -> Path:
    return directory / "topics" / f"{topic}{_SUFFIX}"


def sizes(directory: Path) -> dict[str, int]:
    """The bytes of each topic's file."""
    try:
        with os.scandir(directory / "topics") as entries:
            return {
                entry.name.removesuffix(_SUFFIX): entry.stat().st_size
                for entry in entries
                if entry.name.endswith(_SUFFIX) and is_topic(entry.name.removesuffix(_SUFFIX))
            }
    except FileNotFoundError:
        return {}


def line_of(record: Record) -> bytes:
    """With the newline that ends it. The payload goes in as it is: canonical JSON."""
    start = b'{"id":%d,"event":{"kind":%b,"payload":' % (record.event_id, encode(record.kind))
    tail = b',"headers":%b,"occurred_at_ms":%d}}\n' % (
        encode(record.headers),
        record.occurred_at_ms,
    )
    return start + record.raw + tail


def record_of(topic: str, line: bytes) -> Record | None:
    """None for a line that holds no record."""
    found = _parsed(line)
    if found is None:
        return None
    event_id, event = found
    kind, occurred_at_ms = event.get("kind"), event.get("occurred_at_ms")
    return Record(
        topic,
        event_id,
        clean_text(kind) if isinstance(kind, str) else "",
        _raw(event.get("payload")),
        headers_of(event.get("headers")),
        occurred_at_ms if isinstance(occurred_at_ms, int) else 0,
    )


def scan(path: Path, offset: int, limit: int) -> Iterator[Line]:
    """Up to `limit` lines from an offset. A torn last line is left out."""
    with path.open("rb") as file:
        file.seek(offset)
        for _ in range(limit):
            line = file.readline()
            found = _parsed(line)
            if not line or (found is None and not line.endswith(b"\n")):
                return
            yield Line(offset, offset + len(line), found[0] if found else None)
            offset += len(line)


def write_at(path: Path, offset: int, lines: bytes) -> bool:
    """Put lines where they belong, cutting a torn line; False where others wrote there.

    Writing what is there already changes nothing.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    with os.fdopen(descriptor, "r+b") as file:
        if offset > file.seek(0, os.SEEK_END):
            return False
        file.seek(offset)
        found = file.read(len(lines))
        if found == lines:
            return True
        if b"\n" in found and not lines.startswith(found):
            return False
        file.seek(offset)
        file.truncate()
        file.write(lines)
    return True


def ends_open(path: Path, size: int) -> bool:
    """Whether the last line, complete in itself, lacks its newline."""
    if size == 0:
        return False
    with path.open("rb") as file:
        file.seek(size - 1)
        return file.read(1) != b"\n"


def read_cursor(directory: Path, topic: str, consumer_id: str) -> ConsumerCursor | None:
    try:
        found = json.loads(_cursor_path(directory, topic, consumer_id).read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    if not isinstance(found, dict) or found.get("consumer_id") != consumer_id:
        return None
    cursor, updated = found.get("cursor"), found.get("updated_at_ms")
    if isinstance(cursor, int) and isinstance(updated, int):
        return ConsumerCursor(cursor, updated)
    return None


def write_cursor(directory: Path, topic: str, consumer_id: str, cursor: ConsumerCursor) -> None:
    path = _cursor_path(directory, topic, consumer_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".tmp")
    fresh.write_bytes(
        encode(
            {
                "topic": topic,
                "consumer_id": consumer_id,
                "cursor": cursor.cursor,
                "updated_at_ms": cursor.updated_at_ms,
            }
        )
    )
    fresh.replace(path)


def _cursor_path(directory: Path, topic: str, consumer_id: str) -> Path:
    return directory / "consumers" / f"{topic}__{safe_topic(consumer_id)}.json"


def _parsed(line: bytes) -> tuple[int, dict[str, Any]] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    event_id, event = found.get("id"), found.get("event")
    if type(event_id) is int and event_id in _EVENT_IDS and isinstance(event, dict):
        return event_id, event
    return None


def _raw(payload: Any) -> bytes:
    """As it was appended; others may have written what is no JSON, which then stays so."""
    try:
        return encode(payload)
    except NotJsonError:
        return json.dumps(payload).encode()
