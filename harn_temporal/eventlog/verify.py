"""Checking the hash chain of a topic: which record was altered, taken out or put in between."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Literal

from harn_temporal.eventlog.log import EventLog
from harn_temporal.eventlog.provenance import computed_hash, stored_hash
from harn_temporal.eventlog.records import Record
from harn_temporal.headers import PROVENANCE_PREV_HASH, PROVENANCE_RECORD_HASH

Difference = Literal["record_hash", "prev_hash", "missing"]

_PAGE = 200


@dataclass(frozen=True, slots=True)
class Fault:
    """The first record of a topic that is not as it was appended.

    `record_hash`: its content is not what its own hash was taken over. `prev_hash`: its successor
    was appended after another content. `missing`: the record, or all up to it, is gone.
    """

    topic: str
    event_id: int
    difference: Difference
    detail: str


@dataclass(frozen=True, slots=True)
class Verified:
    """`records` were looked at, `sealed` of them carry a hash; others come from other writers."""

    topic: str
    records: int
    sealed: int
    fault: Fault | None


async def verify_topic(log: EventLog, topic: str) -> Verified:
    """Read a topic from its beginning, page by page, up to its head or the first fault."""
    head = await log.query(lambda reader: reader.head(topic))
    records = sealed = 0
    previous: Record | None = None
    async for record in _records(log, topic, head):
        fault = _fault(previous, record)
        if fault is not None:
            return Verified(topic, records, sealed, fault)
        records += 1
        sealed += _is_sealed(record)
        previous = record
    last_id = previous.event_id if previous else 0
    fault = None
    if last_id < head:
        fault = _missing(topic, last_id + 1, f"the topic had {head} records, {last_id} are left")
    return Verified(topic, records, sealed, fault)


async def _records(log: EventLog, topic: str, head: int) -> AsyncIterator[Record]:
    after = 0
    while after < head:
        page = await log.read(topic, after, min(_PAGE, head - after))
        for record in page:
            if record.event_id <= head:
                yield record
        if not page:
            return
        after = page[-1].event_id


def _fault(previous: Record | None, record: Record) -> Fault | None:
    topic, event_id = record.topic, record.event_id
    expected_id = previous.event_id + 1 if previous else 1
    if event_id != expected_id:
        gone = f"record {event_id} comes where record {expected_id} should be"
        return _missing(topic, expected_id, gone)
    if not _is_sealed(record):
        return None
    carried, computed = record.headers[PROVENANCE_RECORD_HASH], computed_hash(record)
    if carried != computed:
        detail = f"its content gives {computed}, it was appended with {carried}"
        return Fault(topic, event_id, "record_hash", detail)
    before = stored_hash(previous) if previous else None
    named = record.headers.get(PROVENANCE_PREV_HASH)
    if named != before:
        detail = (
            f"record {event_id} was appended after {named or 'nothing'}, "
            f"but the record before it has {before or 'never been'}"
        )
        return Fault(topic, previous.event_id if previous else event_id, "prev_hash", detail)
    return None


def _missing(topic: str, event_id: int, detail: str) -> Fault:
    return Fault(topic, event_id, "missing", detail)


def _is_sealed(record: Record) -> bool:
    return bool(record.headers.get(PROVENANCE_RECORD_HASH, "").strip())
