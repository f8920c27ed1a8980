"""The EventLog as its users see it. Backends are in files of their own, beside this one.

Every fact is an appended record. What must be asked quickly lies in projection tables of the
same store, folded in the transaction that appends. A store never blocks the event loop: the
work of `transact` and `query` is a plain function that runs in the store's own thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from harn_temporal.eventlog.bindings import BindingsTables
from harn_temporal.eventlog.inbox import InboxTables

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Append:
    """A record to be appended. `payload` is anything JSON can hold; the store cleans and encodes it.

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

    @property
    def payload(self) -> Any:
        """The decoded payload. Raises StoreError where it is no JSON, naming topic and id."""
        ...


@dataclass(frozen=True, slots=True)
class Appended:
    """`fresh` is False when the key had been used: then `records` are those written then."""

    records: tuple[Record, ...]
    fresh: bool


@dataclass(frozen=True, slots=True)
class TopicHead:
    topic: str
    last_id: int


class Reader(Protocol):
    """What a function given to `query` may ask; valid only inside it."""

    @property
    def now_ms(self) -> int:
        """The store's clock, fixed for the transaction."""

    @property
    def inbox(self) -> InboxTables: ...

    @property
    def bindings(self) -> BindingsTables: ...

    def read(self, topic: str, after: int = 0, limit: int = 1000) -> list[Record]:
        """Records strictly after the id `after`, in order."""

    def head(self, topic: str) -> int:
        """The last id of a topic, 0 where it is empty."""

    def cursor(self, topic: str, consumer_id: str) -> int:
        """A consumer's durable cursor, 0 where it has none."""

    def written(self, key: str) -> tuple[Record, ...]:
        """What was appended with this idempotency key, in order; empty where it was never used."""


class Transaction(Reader, Protocol):
    """What a function given to `transact` may do; all of it or nothing is kept."""

    def append(self, records: Sequence[Append], key: str | None = None) -> Appended:
        """Append in order. With a `key` that was used before, nothing is appended."""

    def ack(self, topic: str, consumer_id: str, cursor: int) -> None:
        """Move a consumer's durable cursor. It never moves back."""


class EventLog(Protocol):
    """Raises StoreUnavailableError where the store cannot be reached, StoreError where it is damaged."""

    @property
    def store_id(self) -> str:
        """Made with the store, the same for every process that opens it."""

    async def append(self, records: Sequence[Append], key: str | None = None) -> Appended: ...

    async def transact(self, work: Callable[[Transaction], T]) -> T: ...

    async def query(self, work: Callable[[Reader], T]) -> T: ...

    async def read(self, topic: str, after: int = 0, limit: int = 1000) -> list[Record]: ...

    async def topics(self, prefix: str = "") -> list[TopicHead]: ...

    async def changed(self, since: int, timeout: float) -> int:
        """Wait until something was appended, by anyone, after the mark `since`.

        Returns the mark to pass next time, at the latest after `timeout` seconds. Start with 0.
        """

    async def rebuild(self) -> None:
        """Make all projections anew from the log, while others go on appending."""

    async def close(self) -> None: ...
