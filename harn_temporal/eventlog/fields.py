"""Reading records that anyone may have written: a field is there as it should be, or is named."""

from __future__ import annotations

from typing import Any

from harn_temporal.canonical import clean_text
from harn_temporal.errors import HarnTemporalError, StoreError
from harn_temporal.eventlog.records import Record

_INTEGERS = range(-(2**63), 2**63)


class Malformed(HarnTemporalError):  # noqa: N818 - what the record is; never leaves the fold
    """A record that a projection can make no sense of, and why."""


def mapping(record: Record) -> dict[str, Any]:
    try:
        payload = record.payload
    except StoreError as error:
        raise Malformed(str(error.__cause__ or error)) from error
    if not isinstance(payload, dict):
        raise Malformed("has a payload that is no JSON object")
    return payload


def text(payload: dict[str, Any], name: str, default: str | None = None) -> str:
    value = payload.get(name, default)
    if not isinstance(value, str):
        raise Malformed(f"has no text in {name}")
    return clean_text(value)


def integer(payload: dict[str, Any], name: str) -> int:
    value = payload.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value not in _INTEGERS:
        raise Malformed(f"has no 64-bit integer in {name}")
    return value
