"""What a backend has to give: a session, which is one connection used by one thread at a time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from harn_temporal.eventlog.records import ConsumerCursor, Record, TopicHead
from harn_temporal.eventlog.statements import Statements


class Session(Statements, Protocol):
    """Transactions, named statements, and the records themselves."""

    generation: int
    """Of the projection tables that statements with `@` go to; 0 where there are none."""

    def begin(self, *, write: bool) -> None:
        """A writer excludes all others at once; a reader sees one state until its rollback."""

    def commit(self) -> None: ...

    def rollback(self) -> None:
        """Also where no transaction is open."""

    def close(self) -> None: ...

    def insert(self, records: Sequence[Record]) -> None: ...

    def read(self, topic: str, after: int, limit: int) -> list[Record]: ...

    def one(self, topic: str, event_id: int) -> Record | None: ...

    def nearest(self, topic: str) -> Record | None:
        """The last record of a topic that is still there."""

    def head(self, topic: str) -> int: ...

    def topics(self, prefix: str) -> list[TopicHead]: ...

    def consumer(self, topic: str, consumer_id: str) -> ConsumerCursor | None: ...

    def ack(self, topic: str, consumer_id: str, cursor: int, now_ms: int) -> None: ...

    def notice(self, limit: int) -> bool:
        """Note what others appended, where the store does not do so by itself.

        Looks at no more than `limit` records; returns whether more are left.
        """

    def behind(self) -> bool:
        """Whether others appended something that is not folded yet."""

    def drop_some(self, generation: int, limit: int) -> bool:
        """Delete up to `limit` rows of a generation's tables; True when the tables are gone."""

    def position(self) -> int:
        """Grows with every append, by anyone; outside of transactions."""


class Backend(Protocol):
    """Opens sessions on one store."""

    @property
    def place(self) -> str:
        """The store as people know it: a path, an address."""

    @property
    def store_id(self) -> str:
        """Known once a session was opened."""

    @property
    def reads_apart(self) -> bool:
        """Whether a second session can read while the first one writes."""

    def open(self) -> Session:
        """Makes the store where there is none. Raises StoreUnavailableError and StoreError."""

    def rebuild_lock(self) -> AbstractContextManager[bool]:
        """Held by who rebuilds, among all processes; gives False where another has it."""
