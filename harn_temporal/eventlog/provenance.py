"""The hash chain over the records of a topic, as Harn computes it.

A record's hash covers all of it and, by a header, the hash of the record before it.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Final

from harn_temporal.canonical import clean, decode, encode
from harn_temporal.errors import NotJsonError
from harn_temporal.eventlog.records import Record
from harn_temporal.headers import (
    PROVENANCE_PREV_HASH,
    PROVENANCE_RECORD_HASH,
    PROVENANCE_SCHEMA,
)

SCHEMA: Final = "harn-eventlog-provenance-v1"


def sealed_headers(
    *,
    topic: str,
    event_id: int,
    kind: str,
    raw: bytes,
    headers: Mapping[str, str],
    occurred_at_ms: int,
    prev_hash: str | None,
) -> dict[str, str]:
    """The headers with the three of provenance. `raw` is canonical JSON, `headers` clean."""
    sealed = {**headers, PROVENANCE_SCHEMA: SCHEMA}
    sealed.pop(PROVENANCE_PREV_HASH, None)
    sealed.pop(PROVENANCE_RECORD_HASH, None)
    if prev_hash is not None:
        sealed[PROVENANCE_PREV_HASH] = prev_hash
    sealed[PROVENANCE_RECORD_HASH] = _hash(
        Record(topic, event_id, kind, raw, sealed, occurred_at_ms)
    )
    return sealed


def computed_hash(record: Record) -> str:
    """The hash that the record should carry, over its content as it lies there now."""
    headers = {k: v for k, v in record.headers.items() if k != PROVENANCE_RECORD_HASH}
    return _hash(dataclasses.replace(record, raw=_canonical(record.raw), headers=headers))


def stored_hash(record: Record) -> str:
    """The hash that the next record of the topic refers to: the one it carries, else computed."""
    carried = record.headers.get(PROVENANCE_RECORD_HASH, "")
    return carried if carried.strip() else computed_hash(record)


def _hash(record: Record) -> str:
    """Over a record whose payload is canonical and whose headers hold no record hash."""
    digest = hashlib.sha256()
    digest.update(b'{"event_id":%d,"headers":%b' % (record.event_id, encode(record.headers)))
    digest.update(b',"kind":%b,"occurred_at_ms":' % encode(record.kind))
    digest.update(b'%d,"payload":' % record.occurred_at_ms)
    digest.update(record.raw)
    digest.update(b',"topic":%b}' % encode(record.topic))
    return f"sha256:{digest.hexdigest()}"


def _canonical(raw: bytes) -> bytes:
    """Others may write the same value in another way. What is no JSON is hashed as a string."""
    try:
        return encode(clean(decode(raw)))
    except NotJsonError:
        return encode(raw.decode("utf-8", "replace"))
