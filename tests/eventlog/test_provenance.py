"""The hash chain, against fixed vectors and a second, independent way to compute it."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harn_temporal.canonical import clean, encode
from harn_temporal.eventlog.provenance import computed_hash, sealed_headers, stored_hash
from harn_temporal.eventlog.records import Record

VECTORS = [
    (
        (
            '{"event_id":1,"headers":{"harn.provenance.schema":"harn-eventlog-provenance-v1"},'
            '"kind":"noted","occurred_at_ms":1700000000000,"payload":{"a":1,"b":[true,null]},'
            '"topic":"notes"}'
        ),
        Record("notes", 1, "noted", b'{"b": [true, null], "a": 1}', {}, 1_700_000_000_000),
    ),
    (
        (
            '{"event_id":2,"headers":{"a":"\\u0000\\n","harn.provenance.schema":'
            '"harn-eventlog-provenance-v1","é":"✓"},"kind":"q\\"uote","occurred_at_ms":-1,'
            '"payload":[1e+16,0.00001,1e-7,1.5,18446744073709551615,0.1],"topic":"t.é-_"}'
        ),
        Record(
            "t.é-_",
            2,
            'q"uote',
            b"[1e16, 0.00001, 0.0000001, 1.50, 18446744073709551615, 0.1]",
            {"é": "✓", "a": "\x00\n"},
            -1,
        ),
    ),
]

HASHES = [
    "sha256:e77554334b5384ea943d61a12df645569adc28213d3a293360e6a0662fc0eaa0",
    "sha256:8611206f8c6c84cd1506bd26a31df900353f5f8379eb393742765cd4c13ac867",
]


def sealed(record: Record, prev_hash: str | None = None) -> Record:
    raw = encode(clean(record.payload))
    headers = sealed_headers(
        topic=record.topic,
        event_id=record.event_id,
        kind=record.kind,
        raw=raw,
        headers=record.headers,
        occurred_at_ms=record.occurred_at_ms,
        prev_hash=prev_hash,
    )
    return Record(record.topic, record.event_id, record.kind, raw, headers, record.occurred_at_ms)


@pytest.mark.parametrize(
    ("hashed", "record", "expected"),
    [(text, record, digest) for (text, record), digest in zip(VECTORS, HASHES, strict=True)],
)
def test_the_hash_is_taken_over_compact_json_with_sorted_keys(hashed, record, expected):
    assert f"sha256:{hashlib.sha256(hashed.encode()).hexdigest()}" == expected
    assert sealed(record).headers["harn.provenance.record_hash"] == expected


def test_a_record_without_a_hash_counts_with_the_one_it_would_have():
    bare = Record("notes", 1, "noted", b"{ }", {"b": "2", "a": "1"}, 5)
    text = (
        '{"event_id":1,"headers":{"a":"1","b":"2"},"kind":"noted","occurred_at_ms":5,'
        '"payload":{},"topic":"notes"}'
    )
    expected = f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    assert stored_hash(bare) == computed_hash(bare) == expected
    blank = Record("notes", 1, "noted", b"{}", {"harn.provenance.record_hash": " "}, 5)
    assert stored_hash(blank) == computed_hash(blank)


def test_a_stored_hash_is_taken_at_its_word():
    record = Record("notes", 1, "noted", b"{}", {"harn.provenance.record_hash": "sha256:x"}, 5)
    assert stored_hash(record) == "sha256:x"


def test_callers_cannot_choose_the_headers_of_the_chain():
    forged = {
        f"harn.provenance.{name}": "forged" for name in ("schema", "prev_hash", "record_hash")
    }
    first = sealed(Record("notes", 1, "noted", b"{}", forged, 5))
    assert first.headers["harn.provenance.schema"] == "harn-eventlog-provenance-v1"
    assert "harn.provenance.prev_hash" not in first.headers
    assert first.headers["harn.provenance.record_hash"] == computed_hash(first)
    second = sealed(Record("notes", 2, "noted", b"{}", forged, 5), stored_hash(first))
    assert second.headers["harn.provenance.prev_hash"] == stored_hash(first)


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b"NaN", b'{"a": 1}}', b"[" * 100_000])
def test_what_is_no_json_has_a_hash_all_the_same(raw):
    record = Record("notes", 1, "noted", raw, {}, 5)
    other = Record("notes", 1, "noted", raw + b"x", {}, 5)
    assert computed_hash(record) == computed_hash(record)
    assert computed_hash(record) != computed_hash(other)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(JSON, st.dictionaries(st.text(), st.text()), st.text(), st.integers(-(2**40), 2**40))
def test_the_hash_agrees_with_another_way_to_compute_it(payload, headers, kind, occurred_at_ms):
    record = Record("notes", 7, kind, json.dumps(payload).encode(), headers, occurred_at_ms)
    plain = {
        "topic": "notes",
        "event_id": 7,
        "kind": kind,
        "payload": payload,
        "headers": {k: v for k, v in headers.items() if k != "harn.provenance.record_hash"},
        "occurred_at_ms": occurred_at_ms,
    }
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    expected = hashlib.sha256(text.encode("utf-8")).hexdigest()
    assert computed_hash(record) == f"sha256:{expected}"
