"""What became of the events of each binding, counted over the records of the outbox."""

from __future__ import annotations

import heapq
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from harn_temporal.clock import rfc3339
from harn_temporal.eventlog.log import EventLog, Record
from harn_temporal.eventlog.topics import TRIGGER_OUTBOX
from harn_temporal.headers import OUTCOME, WORKFLOW_ID
from harn_temporal.inspection.paging import records_of, topics_like

UNDER_WAY = ("running", "retrying", "failing")
ENDED = ("succeeded", "failed", "dlq", "skipped", "waiting", "cancelled")

_STATUS = {
    "dispatch_started": "running",
    "dispatch_succeeded": "succeeded",
    "dispatch_failed": "failing",
    "dispatch_waiting": "waiting",
    "dispatch_skipped": "skipped",
}


@dataclass(slots=True)
class Dispatch:
    """One event for one binding, as far as it has come.

    `status` is that of a DispatchOutcome, or `running` in an attempt, `retrying` between two, or
    `failing` after a failed attempt of Harn's, whose records do not say whether it was the last.
    """

    event_id: str
    binding_key: str
    tenant_id: str | None
    status: str = "running"
    attempts: int = 0
    at_ms: int = 0

    @property
    def ended(self) -> bool:
        return self.status not in UNDER_WAY

    def to_json(self) -> dict[str, Any]:
        return {
            "event_id": self.event_id,
            "binding_key": self.binding_key,
            "tenant_id": self.tenant_id,
            "status": self.status,
            "attempts": self.attempts,
            "at": rfc3339(self.at_ms),
        }


@dataclass(slots=True)
class Figures:
    """Dispatches of one binding by the status they have now, and the attempts they took."""

    dispatches: int = 0
    attempts: int = 0
    by_status: dict[str, int] = field(default_factory=dict)
    last_at_ms: int | None = None

    @property
    def under_way(self) -> int:
        return sum(self.by_status.get(status, 0) for status in UNDER_WAY)

    def add(self, dispatch: Dispatch) -> None:
        self.dispatches += 1
        self.attempts += dispatch.attempts
        self.by_status[dispatch.status] = self.by_status.get(dispatch.status, 0) + 1
        self.last_at_ms = max(self.last_at_ms or 0, dispatch.at_ms)

    def to_json(self) -> dict[str, Any]:
        return {
            "dispatches": self.dispatches,
            "attempts": self.attempts,
            **{status: self.by_status.get(status, 0) for status in (*UNDER_WAY, *ENDED)},
            "last_at": None if self.last_at_ms is None else rfc3339(self.last_at_ms),
        }


class Dispatches:
    """Folds outbox records. Of dispatches that have ended, it keeps only figures and the latest."""

    def __init__(self, latest: int = 0) -> None:
        self.figures: dict[str, Figures] = {}
        self._wanted = latest
        self._counted = 0
        self._latest: list[tuple[int, int, Dispatch]] = []  # a heap, the oldest first
        self._open: dict[tuple[str, str, str], Dispatch] = {}

    def fold(self, record: Record) -> None:
        key = _key(record)
        if key is None:
            return
        binding_key, event_id, _ = key
        dispatch = self._open.get(key)
        if dispatch is None:
            dispatch = Dispatch(event_id, binding_key, record.headers.get("tenant_id"))
            self._open[key] = dispatch
        _advance(dispatch, record)
        if dispatch.ended:
            del self._open[key]
            self._count(dispatch)

    def finish(self) -> None:
        """Count those that are still under way; call it once, after the last record."""
        for dispatch in self._open.values():
            self._count(dispatch)

    @property
    def latest(self) -> list[Dispatch]:
        """The newest last."""
        return [dispatch for _, _, dispatch in sorted(self._latest)]

    def _count(self, dispatch: Dispatch) -> None:
        self.figures.setdefault(dispatch.binding_key, Figures()).add(dispatch)
        self._counted += 1  # tells dispatches of one millisecond apart
        heapq.heappush(self._latest, (dispatch.at_ms, self._counted, dispatch))
        if len(self._latest) > self._wanted:
            heapq.heappop(self._latest)


async def dispatches(
    log: EventLog, binding_keys: Collection[str] | None = None, latest: int = 0
) -> Dispatches:
    """The dispatches of a store, or of some bindings: figures, and the `latest` ones."""
    found = Dispatches(latest)
    for topic in await topics_like(log, TRIGGER_OUTBOX):
        async for record in records_of(log, topic):
            if binding_keys is None or record.headers.get("binding_key") in binding_keys:
                found.fold(record)
    found.finish()
    return found


def _key(record: Record) -> tuple[str, str, str] | None:
    """Binding, event, and the workflow: a replay of an event is a dispatch of its own."""
    binding_key = record.headers.get("binding_key")
    event_id = record.headers.get("event_id")
    if record.kind not in _STATUS or binding_key is None or event_id is None:
        return None
    return binding_key, event_id, record.headers.get(WORKFLOW_ID, "")


def _advance(dispatch: Dispatch, record: Record) -> None:
    dispatch.at_ms = max(dispatch.at_ms, record.occurred_at_ms)
    attempt = record.headers.get("attempt", "")
    if attempt.isdecimal() and record.kind == "dispatch_started":
        dispatch.attempts = max(dispatch.attempts, int(attempt))
    final = record.headers.get(OUTCOME)
    if final is not None:
        dispatch.status = final
    elif record.kind == "dispatch_failed":
        dispatch.status = "retrying" if WORKFLOW_ID in record.headers else "failing"
    else:
        dispatch.status = _STATUS[record.kind]
