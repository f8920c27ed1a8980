"""What the outbox says of each event and binding, and the figures of each binding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from harn_temporal.canonical import clean_text
from harn_temporal.errors import StoreError
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.event_index import EventPlace
from harn_temporal.eventlog.records import Record
from harn_temporal.eventlog.statements import Statements
from harn_temporal.headers import OUTCOME, REPLAY_OF, TENANT_ID, WORKFLOW_ID

RUNNING = "running"
RETRYING = "retrying"
FAILING = "failing"
UNDER_WAY = (RUNNING, RETRYING, FAILING)
ENDED = ("succeeded", "failed", "dlq", "skipped", "waiting", "cancelled")

_STARTED = "dispatch_started"
_FAILED = "dispatch_failed"
_STATUS = {
    _STARTED: RUNNING,
    "dispatch_succeeded": "succeeded",
    _FAILED: FAILING,
    "dispatch_waiting": "waiting",
    "dispatch_skipped": "skipped",
}

_DIGITS = 9


@dataclass(frozen=True, slots=True)
class OutboxDispatch:
    """One event for one binding, as far as its dispatch, or a replay of it, has come.

    `status` is that of a DispatchOutcome, or `running` in an attempt, `retrying` between two, or
    `failing` after a failed attempt of Harn's, whose records do not say whether it was the last.
    `workflow_id` is empty for Harn's. Times are 0 where that has not happened; `ended_at_ms` is
    when the last attempt ended.
    """

    event_id: str
    binding_key: str
    workflow_id: str
    topic: str
    tenant_id: str
    replay: bool
    status: str = RUNNING
    attempts: int = 0
    error: str = ""
    started_at_ms: int = 0
    ended_at_ms: int = 0

    @property
    def at_ms(self) -> int:
        return max(self.started_at_ms, self.ended_at_ms)

    @property
    def ended(self) -> bool:
        return self.status not in UNDER_WAY


@dataclass(frozen=True, slots=True)
class OutboxFigures:
    """The dispatches of a binding that have a status now, and the attempts they took.

    `last_at_ms` is when something was last written of any dispatch of the binding.
    """

    binding_key: str
    status: str
    dispatches: int
    attempts: int
    last_at_ms: int


class OutboxTables:
    """The outbox as it stands in a transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    def figures(self) -> list[OutboxFigures]:
        """Of each binding, by status; as much work as there are bindings."""
        return [OutboxFigures(*row) for row in self._statements.rows("outbox.figures")]

    def latest(self, binding_key: str, limit: int) -> list[OutboxDispatch]:
        """The last dispatches of a binding of which something is known, the newest first."""
        return self._dispatches("outbox.latest", binding_key=clean_text(binding_key), limit=limit)

    def of_event(self, event_id: str) -> list[OutboxDispatch]:
        return self._dispatches("outbox.of_event", event_id=clean_text(event_id))

    def of_page(self, after: EventPlace | None, limit: int) -> list[OutboxDispatch]:
        """Those of the events that `EventIndex.page` gives, in no order."""
        event_id, binding_key = ("", "") if after is None else (after.event_id, after.binding_key)
        return self._dispatches(
            "outbox.of_page", event_id=event_id, binding_key=binding_key, limit=limit
        )

    def _dispatches(self, name: str, **parameters: Any) -> list[OutboxDispatch]:
        return [_dispatch(row) for row in self._statements.rows(name, **parameters)]


class OutboxProjection:
    """The records of a dispatch lie in one topic, in order; dispatches have rows of their own."""

    name = "outbox"
    version = 1

    def folds(self, topic: str) -> bool:
        return topics.is_of(topic, topics.TRIGGER_OUTBOX)

    def folder(self, statements: Statements) -> OutboxFolder:
        return OutboxFolder(statements)

    def fold(self, statements: Statements, record: Record) -> None:
        folder = self.folder(statements)
        folder.fold(record)
        folder.finish()


class OutboxFolder:
    """A dispatch is read once and written once in a batch, and so are the figures it counts in."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._before: dict[tuple[str, ...], OutboxDispatch | None] = {}
        self._now: dict[tuple[str, ...], OutboxDispatch] = {}

    def fold(self, record: Record) -> None:
        found = record.headers
        binding_key, event_id = found.get("binding_key"), found.get("event_id")
        if record.kind not in _STATUS or binding_key is None or event_id is None:
            return
        workflow_id = clean_text(found.get(WORKFLOW_ID, ""))
        key = clean_text(event_id), clean_text(binding_key), workflow_id, record.topic
        known = self._now.get(key)
        if known is None:
            known = self._before[key] = self._stored(key)
        if known is None:
            tenant_id = clean_text(found.get(TENANT_ID, ""))
            known = OutboxDispatch(*key, tenant_id=tenant_id, replay=REPLAY_OF in found)
        self._now[key] = _advanced(known, record)

    def finish(self) -> None:
        counts: dict[tuple[str, str], list[int]] = {}
        last: dict[str, int] = {}
        for key, now in self._now.items():
            before = self._before[key]
            if before is not None:
                _count(counts, before, -1)
            _count(counts, now, 1)
            last[now.binding_key] = max(last.get(now.binding_key, 0), now.at_ms)
        self._statements.run_many("outbox.put", [_row(now) for now in self._now.values()])
        self._statements.run_many(
            "outbox.count",
            [
                {
                    "binding_key": binding_key,
                    "status": status,
                    "dispatches": dispatches,
                    "attempts": attempts,
                }
                for (binding_key, status), (dispatches, attempts) in counts.items()
            ],
        )
        self._statements.run_many(
            "outbox.seen", [{"binding_key": each, "at_ms": at_ms} for each, at_ms in last.items()]
        )
        self._before.clear()
        self._now.clear()

    def _stored(self, key: tuple[str, str, str, str]) -> OutboxDispatch | None:
        event_id, binding_key, workflow_id, topic = key
        rows = self._statements.rows(
            "outbox.one",
            event_id=event_id,
            binding_key=binding_key,
            workflow_id=workflow_id,
            topic=topic,
        )
        return _dispatch(rows[0]) if rows else None


def _advanced(known: OutboxDispatch, record: Record) -> OutboxDispatch:
    """An end of ours is the end. Harn has no word for it: what comes after is taken as it is."""
    if known.ended and known.workflow_id:
        return known
    if record.kind == _STARTED:
        return replace(
            known,
            status=RUNNING,
            attempts=max(known.attempts, _attempt(record.headers)),
            error="",
            started_at_ms=max(known.started_at_ms, record.occurred_at_ms),
        )
    status = record.headers.get(OUTCOME)
    if not status and record.kind == _FAILED:
        status = RETRYING if WORKFLOW_ID in record.headers else FAILING
    return replace(
        known,
        status=clean_text(status or _STATUS[record.kind]),
        error=_error(record) if record.kind == _FAILED else "",
        ended_at_ms=max(known.ended_at_ms, record.occurred_at_ms),
    )


def _attempt(headers: Mapping[str, str]) -> int:
    written = headers.get("attempt", "")
    decimal = written.isascii() and written.isdecimal() and len(written) <= _DIGITS
    return int(written) if decimal else 0


def _error(record: Record) -> str:
    try:
        payload = record.payload
    except StoreError:
        return ""
    error = payload.get("error") if isinstance(payload, dict) else None
    return clean_text(error) if isinstance(error, str) else ""


def _count(counts: dict[tuple[str, str], list[int]], dispatch: OutboxDispatch, sign: int) -> None:
    count = counts.setdefault((dispatch.binding_key, dispatch.status), [0, 0])
    count[0] += sign
    count[1] += sign * dispatch.attempts


def _dispatch(row: tuple[Any, ...]) -> OutboxDispatch:
    event_id, binding_key, workflow_id, topic, tenant_id, replay, *rest = row
    return OutboxDispatch(event_id, binding_key, workflow_id, topic, tenant_id, bool(replay), *rest)


def _row(dispatch: OutboxDispatch) -> dict[str, Any]:
    return {name: getattr(dispatch, name) for name in OutboxDispatch.__dataclass_fields__}
