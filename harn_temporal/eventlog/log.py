"""The EventLog as its users see it. Backends are in files of their own, beside this one.

Every fact is an appended record. What must be asked quickly lies in projection tables of the
same store, folded in the transaction that appends. A store never blocks the event loop: the
work of `transact` and `query` is a plain function that runs in the store's own thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from harn_temporal.eventlog.bindings import BindingsTables
from harn_temporal.eventlog.cancel_requests import CancelRequestTables
from harn_temporal.eventlog.circuits import CircuitTables
from harn_temporal.eventlog.dead_letters import DeadLetterTables
from harn_temporal.eventlog.dispatches import DispatchTables
from harn_temporal.eventlog.event_index import EventIndex
from harn_temporal.eventlog.gate_tables import GateStore, GateTables
from harn_temporal.eventlog.inbox import InboxTables
from harn_temporal.eventlog.outbox import OutboxTables
from harn_temporal.eventlog.projections import Skipped
from harn_temporal.eventlog.queue_tables import QueueStore, QueueTables
from harn_temporal.eventlog.records import Append, Appended, ConsumerCursor, Record, TopicHead
from harn_temporal.eventlog.tallies import TallyTables

__all__ = [
    "Append",
    "Appended",
    "ConsumerCursor",
    "EventLog",
    "Observer",
    "Reader",
    "Record",
    "Skipped",
    "TopicHead",
    "Transaction",
]

T = TypeVar("T")

Observer = Callable[[Sequence[Record], float], None]
"""Told what a transaction appended, and how many seconds it took with its wait for the lock."""


class Reader(Protocol):
    """What a function given to `query` may ask; valid only inside it."""

    @property
    def now_ms(self) -> int:
        """The store's clock, fixed for the transaction."""

    @property
    def inbox(self) -> InboxTables: ...

    @property
    def bindings(self) -> BindingsTables: ...

    @property
    def dispatches(self) -> DispatchTables: ...

    @property
    def cancel_requests(self) -> CancelRequestTables: ...

    @property
    def dead_letters(self) -> DeadLetterTables: ...

    @property
    def queues(self) -> QueueTables: ...

    @property
    def tallies(self) -> TallyTables: ...

    @property
    def gates(self) -> GateTables: ...

    @property
    def circuits(self) -> CircuitTables: ...

    @property
    def event_index(self) -> EventIndex: ...

    @property
    def outbox(self) -> OutboxTables: ...

    def read(self, topic: str, after: int = 0, limit: int = 1000) -> list[Record]:
        """Records strictly after the id `after`, in order."""

    def head(self, topic: str) -> int:
        """The last id of a topic, 0 where it is empty."""

    def topics(self, prefix: str = "") -> list[TopicHead]:
        """The topics whose name begins with `prefix`, in the order of their names."""

    def cursor(self, topic: str, consumer_id: str) -> int:
        """A consumer's durable cursor, 0 where it has none."""

    def consumer(self, topic: str, consumer_id: str) -> ConsumerCursor | None:
        """A consumer's cursor and when it last moved or confirmed it; None where it has none."""

    def written(self, key: str) -> tuple[Record, ...]:
        """What was appended with this idempotency key, in order; empty where it was never used."""

    def skipped(self) -> list[Skipped]:
        """Records on topics we fold that no projection could make sense of, with the reason."""


class Transaction(Reader, Protocol):
    """What a function given to `transact` may do; all of it or nothing is kept."""

    @property
    def queues(self) -> QueueStore: ...

    @property
    def gates(self) -> GateStore: ...

    def append(self, records: Sequence[Append], key: str | None = None) -> Appended:
        """Append in order. With a `key` that was used before, nothing is appended."""

    def ack(self, topic: str, consumer_id: str, cursor: int) -> None:
        """Move a consumer's durable cursor. It never moves back."""


class EventLog(Protocol):
    """Raises StoreUnavailableError where it cannot be reached, StoreError where it is damaged.

    StoreUpgradedError says that a newer version of this program has taken it over.

    A caller that is cancelled while its transaction runs does not stop it: it commits or fails
    by itself. Append with a key where that matters.
    """

    @property
    def store_id(self) -> str:
        """Made with the store, the same for every process that opens it."""

    async def append(self, records: Sequence[Append], key: str | None = None) -> Appended: ...

    async def transact(self, work: Callable[[Transaction], T]) -> T: ...

    async def query(self, work: Callable[[Reader], T]) -> T: ...

    async def read(self, topic: str, after: int = 0, limit: int = 1000) -> list[Record]: ...

    async def topics(self, prefix: str = "") -> list[TopicHead]: ...

    async def changed(self, since: int, timeout: float) -> int:  # noqa: ASYNC109 - a result, not an error, when time is up
        """Wait until something was appended, by anyone, after the mark `since`.

        Returns the mark to pass next time, at the latest after `timeout` seconds. Start with 0.
        """

    def observe(self, observer: Observer) -> None:
        """Call `observer` after each commit that appended something here, in the writer's thread.

        It must be quick and must not raise.
        """

    async def rebuild(self) -> None:
        """Make all projections anew from the log, while others go on appending."""

    async def close(self) -> None:
        """Wait for what runs, then release the store. Any use after it raises StoreError."""
