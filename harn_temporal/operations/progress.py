"""How far dispatches have come, in the words of Harn's operations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harn_temporal.clock import rfc3339
from harn_temporal.eventlog import outbox
from harn_temporal.eventlog.dead_letters import StoredDeadLetter
from harn_temporal.eventlog.log import Reader
from harn_temporal.eventlog.outbox import OutboxDispatch

Key = tuple[str, str]
"""Binding key and event id."""

_STATUS = {
    outbox.RUNNING: "in_progress",
    outbox.RETRYING: "retry_scheduled",
    outbox.FAILING: "failed",
}


@dataclass(slots=True)
class Progress:
    """The dispatch of an event for a binding; its replays are dispatches of their own.

    `status` is `pending`, `in_progress`, `retry_scheduled`, or how it ended.
    """

    status: str = "pending"
    attempts: int = 0
    error: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    terminal: bool = False
    cancel_requested: bool = False

    @property
    def cancellable(self) -> bool:
        return not self.terminal and not self.cancel_requested


def progress(reader: Reader, dispatches: Iterable[OutboxDispatch]) -> dict[Key, Progress]:
    """Of those dispatches that are no replays; the latest of each, as of a job's deliveries."""
    found: dict[Key, Progress] = {}
    for dispatch in sorted(dispatches, key=lambda each: (each.at_ms, each.ended)):
        if dispatch.replay:
            continue
        key = dispatch.binding_key, dispatch.event_id
        found[key] = _progress(dispatch)
        letter = None if dispatch.ended or dispatch.workflow_id else _letter(reader, key)
        if letter is not None:  # Harn's: its outbox does not tell the end
            found[key].status, found[key].terminal, found[key].error = "dlq", True, letter.error
    return found


def _progress(dispatch: OutboxDispatch) -> Progress:
    started, ended = dispatch.started_at_ms, dispatch.ended_at_ms
    return Progress(
        status=_STATUS.get(dispatch.status, dispatch.status),
        attempts=dispatch.attempts,
        error=dispatch.error or None,
        started_at=rfc3339(started) if started else None,
        completed_at=rfc3339(ended) if ended else None,
        terminal=dispatch.ended,
    )


def _letter(reader: Reader, key: Key) -> StoredDeadLetter | None:
    binding_key, event_id = key
    letters = reader.dead_letters.of_event(event_id)
    return next((each for each in letters if each.binding_key == binding_key), None)
