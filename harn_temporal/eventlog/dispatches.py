"""Dispatches from their envelope to their end: what the pump counts, finds stranded, and sweeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harn_temporal.canonical import clean_text
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.fields import Malformed, integer, mapping, text
from harn_temporal.eventlog.records import Record
from harn_temporal.eventlog.statements import Statements
from harn_temporal.headers import OUTCOME, PACKAGE, WORKFLOW_ID, replay_number
from harn_temporal.naming import JOB_PREFIX, dispatch_id_prefix, dispatch_workflow_id

ADMITTED = "pump_admitted"
COMPLETED = "pump_dispatch_completed"
PARKED = "dispatch_parked"
LOST = "dispatch_lost"

FOREVER_MS = 2**62

_STARTED = "dispatch_started"
_ATTEMPT_ENDS = frozenset({"dispatch_succeeded", "dispatch_failed", "dispatch_waiting"})
_NOTHING: dict[str, Any] = {
    "package": "",
    "envelope_topic": "",
    "envelope_id": 0,
    "enveloped_at_ms": 0,
    "admitted_at_ms": 0,
    "admitted_id": 0,
    "parked": 0,
    "lost_id": 0,
    "begun_topic": "",
    "begun_id": 0,
    "started_attempt": 0,
    "ended_attempt": 0,
    "outcome": "",
    "completed": 0,
}


@dataclass(frozen=True, slots=True)
class StoredDispatch:
    """How far a dispatch has come. Numbers are 0 and texts empty where that has not happened.

    The envelope is the newest one of this event and binding; `begun_topic` and `begun_id` say
    where the last `dispatch_started` lies.
    """

    workflow_id: str
    package: str
    envelope_topic: str
    envelope_id: int
    enveloped_at_ms: int
    admitted_at_ms: int
    begun_topic: str
    begun_id: int
    started_attempt: int
    ended_attempt: int
    outcome: str
    parked: int
    """One more than the last attempt that went on as a task; 1 where it only waited at a gate."""
    admitted_id: int
    """The envelope that the pump last admitted it with; 0 where it did not."""
    lost_id: int
    """The envelope that it was found lost with: one that was recovered has a newer one."""

    @property
    def admitted(self) -> bool:
        """Whether the pump admitted it, and since it was last lost, if it was."""
        return self.admitted_id > self.lost_id

    @property
    def lost(self) -> bool:
        """Whether its workflow was unknown to Temporal, and it was not recovered since."""
        return not self.outcome and 0 < self.envelope_id <= self.lost_id

    @property
    def waits_between_attempts(self) -> bool:
        return not self.outcome and self.ended_attempt >= max(1, self.started_attempt)

    @property
    def follows_a_task(self) -> bool:
        begun = self.started_attempt > self.ended_attempt
        return not self.outcome and begun and self.parked == self.started_attempt + 1


@dataclass(frozen=True, slots=True)
class Waiting:
    """Envelopes that no dispatch was started for; `oldest_ms` is 0 where there are none."""

    count: int
    oldest_ms: int


@dataclass(frozen=True, slots=True)
class UnderWay:
    """Dispatches without an outcome, in an attempt, between two, or admitted and not begun."""

    in_flight: int
    retrying: int
    admitted: int


class DispatchTables:
    """The dispatches as they stand in a transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    def get(self, workflow_id: str) -> StoredDispatch | None:
        found = self._rows("dispatches.one", workflow_id=clean_text(workflow_id))
        return found[0] if found else None

    def outstanding(self, package: str) -> int:
        """Dispatches that are admitted, and neither past their first attempt nor parked."""
        rows = self._statements.rows("dispatches.outstanding", package=clean_text(package))
        return int(rows[0][0])

    def figures(self) -> UnderWay:
        """Of all packages and queues, lost ones apart; takes as long as there are under way."""
        return UnderWay(*self._statements.rows("dispatches.figures")[0])

    def outstanding_places(self, package: str) -> list[tuple[str, int]]:
        """The topic and id of the envelope of each dispatch that is outstanding."""
        return [
            (topic, event_id)
            for topic, event_id in self._statements.rows(
                "dispatches.outstanding_places", package=clean_text(package)
            )
        ]

    def waiting(
        self, package: str, *, until_ms: int = FOREVER_MS, limit: int = 1000
    ) -> list[StoredDispatch]:
        """What has an envelope from `until_ms` or before and nothing more, the oldest first."""
        return self._rows(
            "dispatches.waiting", package=clean_text(package), until_ms=until_ms, limit=limit
        )

    def lost(
        self, package: str, *, until_ms: int = FOREVER_MS, limit: int = 1000
    ) -> list[StoredDispatch]:
        """What is `lost` with an envelope from `until_ms` or before, the oldest first."""
        return self._rows(
            "dispatches.lost", package=clean_text(package), until_ms=until_ms, limit=limit
        )

    def count_lost(self) -> int:
        """How many are `lost`, of all packages."""
        return int(self._statements.rows("dispatches.count_lost")[0][0])

    def count_waiting(self, package: str, *, until_ms: int = FOREVER_MS) -> Waiting:
        rows = self._statements.rows(
            "dispatches.count_waiting", package=clean_text(package), until_ms=until_ms
        )
        return Waiting(*rows[0])

    def under_way(self, package: str, *, after: str = "", limit: int = 500) -> list[StoredDispatch]:
        """What was admitted or began, and has no outcome, by workflow id; `after` is such an id.

        Only dispatches with a workflow of their own: a job of a queue is its consumer's.
        """
        prefix = clean_text(dispatch_id_prefix(package))
        return self._rows(
            "dispatches.under_way",
            after=max(prefix, after),
            before=prefix + "\U0010ffff",
            limit=limit,
        )

    def jobs_under_way(self, *, after: str = "", limit: int = 500) -> list[StoredDispatch]:
        """As `under_way`, of the jobs of all queues."""
        return self._rows(
            "dispatches.under_way",
            after=max(JOB_PREFIX, clean_text(after)),
            before=JOB_PREFIX + "\U0010ffff",
            limit=limit,
        )

    def all_under_way(self, *, limit: int) -> list[StoredDispatch]:
        """As `under_way`, of all packages, and with the jobs of queues."""
        return self._rows("dispatches.under_way", after="", before="\U0010ffff", limit=limit)

    def unreported(self, package: str, limit: int) -> list[StoredDispatch]:
        """What the pump admitted, and has ended without the pump having said so."""
        return self._rows("dispatches.unreported", package=clean_text(package), limit=limit)

    def _rows(self, name: str, **parameters: Any) -> list[StoredDispatch]:
        return [StoredDispatch(*row) for row in self._statements.rows(name, **parameters)]


class DispatchesProjection:
    """Every column only grows, so records of different topics may come in any order."""

    name = "dispatches"
    version = 5

    def folds(self, topic: str) -> bool:
        return topic == topics.ORCHESTRATOR_LIFECYCLE or any(
            topics.is_of(topic, plain)
            for plain in (topics.INBOX_ENVELOPES, topics.INBOX_LEGACY, topics.TRIGGER_OUTBOX)
        )

    def fold(self, statements: Statements, record: Record) -> None:
        if record.topic == topics.ORCHESTRATOR_LIFECYCLE:
            _fold_lifecycle(statements, record)
        elif topics.is_of(record.topic, topics.TRIGGER_OUTBOX):
            _fold_outbox(statements, record)
        elif record.kind == "event_ingested":
            _fold_envelope(statements, record)


def _fold_lifecycle(statements: Statements, record: Record) -> None:
    workflow_id = record.headers.get(WORKFLOW_ID)
    if workflow_id is None:
        return  # Harn's own
    if record.kind == ADMITTED:
        payload = mapping(record)
        _note(
            statements,
            workflow_id,
            package=clean_text(record.headers.get(PACKAGE, "")),
            envelope_topic=text(payload, "topic"),
            envelope_id=integer(payload, "event_log_id"),
            admitted_at_ms=record.occurred_at_ms,
            admitted_id=integer(payload, "event_log_id"),
        )
    elif record.kind == COMPLETED:
        _note(statements, workflow_id, completed=1)
    elif record.kind == LOST:
        _note(statements, workflow_id, lost_id=integer(mapping(record), "event_log_id"))
    elif record.kind == PARKED:
        _note(statements, workflow_id, parked=1 + _followed_attempt(record))


def _fold_outbox(statements: Statements, record: Record) -> None:
    workflow_id = record.headers.get(WORKFLOW_ID)
    if workflow_id is None:
        return
    found: dict[str, Any] = {}
    if record.kind == _STARTED:
        found = {
            "begun_topic": record.topic,
            "begun_id": record.event_id,
            "started_attempt": _attempt(record),
        }
    elif record.kind in _ATTEMPT_ENDS:
        found = {"ended_attempt": _attempt(record)}
    if record.headers.get(OUTCOME):
        found["outcome"] = clean_text(record.headers[OUTCOME])
    if found:
        _note(statements, workflow_id, **found)


def _fold_envelope(statements: Statements, record: Record) -> None:
    """By its headers alone, since an event may be large. One without our package is not ours."""
    headers = record.headers
    package, trigger_id, event_id = (
        headers.get(name) for name in (PACKAGE, "trigger_id", "event_id")
    )
    if package is None:
        return
    if trigger_id is None or event_id is None:
        raise Malformed(f"has the header {PACKAGE}, and not both trigger_id and event_id")
    try:
        replay = replay_number(headers)
    except ValueError as error:
        raise Malformed(f"has {error}") from error
    _note(
        statements,
        dispatch_workflow_id(package, trigger_id, event_id, replay),
        package=clean_text(package),
        envelope_topic=record.topic,
        envelope_id=record.event_id,
        enveloped_at_ms=record.occurred_at_ms,
    )


def _followed_attempt(record: Record) -> int:
    """0 where it waits at a gate. Whatever else the record says, the dispatch is parked."""
    try:
        return max(0, integer(mapping(record), "attempt"))
    except Malformed:
        return 0


def _attempt(record: Record) -> int:
    written = record.headers.get("attempt", "")
    if not (written.isascii() and written.isdecimal() and len(written) <= len("999999999")):
        raise Malformed("has no number in the header attempt")
    return int(written)


def _note(statements: Statements, workflow_id: str, **found: Any) -> None:
    statements.run(
        "dispatches.note", **{**_NOTHING, "workflow_id": clean_text(workflow_id), **found}
    )
