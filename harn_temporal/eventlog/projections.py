"""Keeping projections: one way to fold a record, whoever appended it and whenever."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from harn_temporal.errors import StoreUpgradedError
from harn_temporal.eventlog.bindings import BindingsProjection
from harn_temporal.eventlog.cancel_requests import CancelRequestsProjection
from harn_temporal.eventlog.circuits import CircuitsProjection
from harn_temporal.eventlog.dead_letters import DeadLettersProjection
from harn_temporal.eventlog.dispatches import DispatchesProjection
from harn_temporal.eventlog.event_index import EventIndexProjection
from harn_temporal.eventlog.fields import Malformed
from harn_temporal.eventlog.gates import GatesProjection
from harn_temporal.eventlog.inbox import InboxProjection
from harn_temporal.eventlog.outbox import OutboxProjection
from harn_temporal.eventlog.queues import QueuesProjection
from harn_temporal.eventlog.records import Record
from harn_temporal.eventlog.session import Session
from harn_temporal.eventlog.statements import Statements
from harn_temporal.eventlog.tallies import TalliesProjection
from harn_temporal.headers import IDEMPOTENCY_KEY

BATCH_RECORDS = 500
BATCH_SECONDS = 0.04
"""A write transaction that folds what others appended ends at whichever comes first."""


class Projection(Protocol):
    """Folding gives the same state in whatever order the records of different topics come.

    `fold` raises Malformed for a record it can make no sense of. Raise `version` with every
    change of the tables or of the fold: they are then made anew when a store is opened.
    """

    name: str
    version: int

    def folds(self, topic: str) -> bool: ...

    def fold(self, statements: Statements, record: Record) -> None: ...


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record that a projection could make no sense of."""

    topic: str
    event_id: int
    projection: str
    reason: str


PROJECTIONS: tuple[Projection, ...] = (
    InboxProjection(),
    BindingsProjection(),
    DispatchesProjection(),
    CancelRequestsProjection(),
    DeadLettersProjection(),
    QueuesProjection(),
    TalliesProjection(),
    GatesProjection(),
    CircuitsProjection(),
    EventIndexProjection(),
    OutboxProjection(),
)


def current_version() -> int:
    """Of all projections together; it grows when one of them changes or is added."""
    return sum(projection.version for projection in PROJECTIONS)


@functools.lru_cache(maxsize=10_000)
def projections_of(topic: str) -> tuple[Projection, ...]:
    return tuple(projection for projection in PROJECTIONS if projection.folds(topic))


def create_tables(statements: Statements) -> None:
    statements.script("skipped.create")
    for projection in PROJECTIONS:
        statements.script(f"{projection.name}.create")


class Folder(Protocol):
    """Folds the records of one batch; what it puts off is written by `finish`."""

    def fold(self, record: Record) -> None: ...

    def finish(self) -> None: ...


@runtime_checkable
class BatchProjection(Protocol):
    """A projection that folds many records at once faster than one after the other."""

    def folder(self, statements: Statements) -> Folder: ...


_BATCHED = {each.name: each for each in PROJECTIONS if isinstance(each, BatchProjection)}
"""Found once: asking a protocol costs as much as a statement."""


class Folding:
    """Folds records into the tables of the session's generation. `finish` it in the end."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._folders: dict[str, Folder] = {}

    def fold(self, record: Record) -> None:
        for projection in projections_of(record.topic):
            try:
                batched = _BATCHED.get(projection.name)
                if batched is None:
                    projection.fold(self._statements, record)
                else:
                    self._folder(projection.name, batched).fold(record)
            except Malformed as error:
                self._statements.run(
                    "skipped.note",
                    topic=record.topic,
                    event_id=record.event_id,
                    projection=projection.name,
                    reason=str(error),
                )

    def finish(self) -> None:
        for folder in self._folders.values():
            folder.finish()
        self._folders.clear()

    def _folder(self, name: str, projection: BatchProjection) -> Folder:
        if name not in self._folders:
            self._folders[name] = projection.folder(self._statements)
        return self._folders[name]


def fold_all(statements: Statements, records: Iterable[Record]) -> None:
    folding = Folding(statements)
    for record in records:
        folding.fold(record)
    folding.finish()


def use_live_generation(session: Session) -> bool:
    """Point the session to the tables in use; False where none are of this code's version.

    Raises StoreUpgradedError where they are of a later one.
    """
    version = current_version()
    rows = session.rows("generations.live")
    if rows and rows[0][1] > version:
        raise StoreUpgradedError(
            "a newer version of harn-temporal has upgraded the EventLog, which this process can "
            "no longer use: upgrade harn-temporal here as well, then start this command again"
        )
    session.generation = rows[0][0] if rows and rows[0][1] == version else 0
    return session.generation != 0


def begin_caught_up(session: Session) -> None:
    """Begin a write transaction in which everything that others appended is folded.

    What is long is folded in transactions of its own, so that none keeps others waiting.
    """
    while True:
        session.begin(write=True)
        try:
            use_live_generation(session)
            if _fold_noted(session):
                return
            session.commit()
        except BaseException:
            session.rollback()
            raise


class Budget:
    """How much more a write transaction may take on."""

    def __init__(self) -> None:
        self._records = BATCH_RECORDS
        self._until = time.monotonic() + BATCH_SECONDS

    @property
    def left(self) -> int:
        """Records; 0 also when time is up."""
        return self._records if time.monotonic() < self._until else 0

    def spend(self) -> None:
        self._records -= 1


def _fold_noted(session: Session) -> bool:
    """Fold noted records, oldest first, within a budget; True when none are left."""
    unseen = session.notice(BATCH_RECORDS)
    budget = Budget()
    notes = session.rows("notes.oldest", limit=BATCH_RECORDS)
    heads: dict[str, int] = {}
    folded = 0
    folding = Folding(session)
    for seq, topic, event_id in notes:
        if isinstance(event_id, int):  # SQLite lets others write any type: that is no record
            record = session.one(topic, event_id)
            if record is not None:
                _restore_key(session, record)
                if session.generation:
                    folding.fold(record)
            heads[topic] = max(heads.get(topic, 0), event_id)
        folded = seq
        budget.spend()
        if not budget.left:
            break
    folding.finish()
    if not notes:
        return not unseen
    for topic, last_id in heads.items():
        session.run("heads.raise", topic=topic, last_id=last_id)
    session.run("notes.clear", seq=folded)
    return not unseen and len(notes) < BATCH_RECORDS and folded == notes[-1][0]


def _restore_key(session: Session, record: Record) -> None:
    value = record.headers.get(IDEMPOTENCY_KEY)
    if value is not None:
        session.run(
            "keys.insert",
            topic=record.topic,
            key=IDEMPOTENCY_KEY,
            value=value,
            event_id=record.event_id,
        )
