"""What is put into the EventLog, and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harn_temporal.canonical import clean_text, decode
from harn_temporal.errors import NotJsonError, StoreError

UNKNOWN: Final = object()


@dataclass(frozen=True, slots=True)
class Append:
    """A record to be appended. `payload` is what JSON can hold; the store cleans and encodes it.

    `occurred_at_ms` is the store's clock where it is None.
    """

    topic: str
    kind: str
    payload: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    occurred_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it lies in the log. `raw` is the payload's UTF-8 JSON."""

    topic: str
    event_id: int
    kind: str
    raw: bytes
    headers: Mapping[str, str]
    occurred_at_ms: int
    known: Any = field(default=UNKNOWN, compare=False, repr=False)
    """The payload, where it was at hand when the record was made; not to be changed."""

    @property
    def payload(self) -> Any:
        """The decoded payload. Raises StoreError where it is no JSON, naming topic and id."""
        if self.known is not UNKNOWN:
            return self.known
        try:
            return decode(self.raw)
        except NotJsonError as error:
            raise StoreError(
                f"record {self.event_id} of topic {self.topic} has a payload that is {error}"
            ) from error


@dataclass(frozen=True, slots=True)
class Appended:
    """`fresh` is False when the key had been used: then `records` are those written then."""

    records: tuple[Record, ...]
    fresh: bool


@dataclass(frozen=True, slots=True)
class TopicHead:
    topic: str
    last_id: int


@dataclass(frozen=True, slots=True)
class ConsumerCursor:
    """How far a consumer has read, and when it last said so (milliseconds since the epoch)."""

    cursor: int
    updated_at_ms: int


def headers_of(found: Any) -> dict[str, str]:
    """The headers of a record that anyone may have written: what is not text is not there."""
    if not isinstance(found, dict):
        return {}
    return {
        clean_text(name): clean_text(value)
        for name, value in found.items()
        if isinstance(value, str)
    }
