"""Where the events lie, and the updates of their action graphs: found by the events' ids."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from harn_temporal.canonical import clean_text
from harn_temporal.errors import StoreError
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.near_ids import near_ids
from harn_temporal.eventlog.records import Record
from harn_temporal.eventlog.statements import Statements
from harn_temporal.headers import PACKAGE, REPLAY, REPLAY_OF

_HOLDERS = (topics.INBOX_ENVELOPES, topics.INBOX_LEGACY, topics.TRIGGERS_EVENTS)
"""Topics with events, the preferred one first."""

_KINDS = frozenset({"event_ingested", "trigger_event"})
_REPLAYED = re.compile(rb'"replay_of_event_id"\s*:\s*"')
_DIGITS = 9


@dataclass(frozen=True, slots=True)
class EventPlace:
    """A record with the event of a binding: its envelope, or what Harn wrote for replays.

    `package` is empty where the record does not name one.
    """

    event_id: str
    binding_key: str
    trigger_id: str
    version: int | None
    package: str
    topic: str
    record_id: int


class EventIndex:
    """The events as they stand in a transaction. Replays are not among them."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    def of_event(self, event_id: str) -> list[EventPlace]:
        """One for each binding that the event was for."""
        return self._places("event_index.of_event", event_id=clean_text(event_id))

    def page(self, after: EventPlace | None, limit: int) -> list[EventPlace]:
        """All events, by event id and binding key, so many of them."""
        event_id, binding_key = ("", "") if after is None else (after.event_id, after.binding_key)
        return self._places(
            "event_index.page", event_id=event_id, binding_key=binding_key, limit=limit
        )

    def updates(self, event_id: str) -> list[int]:
        """The ids of the updates of an event's action graph, those of Harn's replays among them."""
        rows = self._statements.rows("event_index.updates", event_id=clean_text(event_id))
        return [record_id for (record_id,) in rows]

    def near(self, event_id: str) -> list[str]:
        """Ids like this one, the nearest first; at most three."""
        return near_ids(self._statements, "event_index", clean_text(event_id))

    def _places(self, name: str, **parameters: Any) -> list[EventPlace]:
        return [
            EventPlace(event_id, binding_key, trigger_id, version or None, package, topic, place)
            for event_id, binding_key, trigger_id, version, package, topic, place in (
                self._statements.rows(name, **parameters)
            )
        ]


class EventIndexProjection:
    """Of several records with an event for a binding one counts, in whatever order they come."""

    name = "event_index"
    version = 1

    def folds(self, topic: str) -> bool:
        return topic == topics.ACTION_GRAPH or _rank(topic) is not None

    def fold(self, statements: Statements, record: Record) -> None:
        if record.topic == topics.ACTION_GRAPH:
            for event_id in _events_of_update(record):
                statements.run(
                    "event_index.note_update", event_id=event_id, record_id=record.event_id
                )
            return
        place = _place(record)
        if place is not None:
            statements.run(
                "event_index.note",
                event_id=place.event_id,
                binding_key=place.binding_key,
                trigger_id=place.trigger_id,
                version=place.version or 0,
                package=place.package,
                rank=_rank(record.topic),
                topic=place.topic,
                record_id=place.record_id,
            )


def place_of(record: Record, event_id: str, trigger_id: str, binding_key: str) -> EventPlace:
    """A record that is known to hold an event; the binding key names the version."""
    _, mark, written = binding_key.rpartition("@v")
    numbered = mark and written.isascii() and written.isdecimal() and len(written) <= _DIGITS
    return EventPlace(
        event_id=clean_text(event_id),
        binding_key=clean_text(binding_key),
        trigger_id=clean_text(trigger_id),
        version=int(written) if numbered else None,
        package=record.headers.get(PACKAGE, ""),
        topic=record.topic,
        record_id=record.event_id,
    )


def _rank(topic: str) -> int | None:
    return next((rank for rank, plain in enumerate(_HOLDERS) if topics.is_of(topic, plain)), None)


def _place(record: Record) -> EventPlace | None:
    """By the headers where they tell, since an event may be large."""
    found = record.headers
    if record.kind not in _KINDS or REPLAY in found:
        return None
    event_id, trigger_id = found.get("event_id"), found.get("trigger_id")
    if event_id is not None and trigger_id is not None and "binding_key" in found:
        if REPLAY_OF in found:
            return None
        return place_of(record, event_id, trigger_id, found["binding_key"])
    payload = _payload(record)
    event, version = payload.get("event"), payload.get("binding_version")
    event_id = event.get("id") if isinstance(event, dict) else None
    trigger_id = payload.get("trigger_id", payload.get("binding_id"))
    first = payload.get("replay_of_event_id") is None
    if not first or not isinstance(event_id, str) or not isinstance(trigger_id, str):
        return None
    numbered = isinstance(version, int) and 0 < version < 2**31
    key = f"{trigger_id}@v{version}" if numbered else trigger_id
    return place_of(record, event_id, trigger_id, key)


def _events_of_update(record: Record) -> set[str]:
    """The event of an update, and the one that it is a replay of under an id of its own."""
    found = {record.headers.get("event_id")}
    if _REPLAYED.search(record.raw):
        context = _payload(record).get("context")
        found.add(context.get("replay_of_event_id") if isinstance(context, dict) else None)
    return {clean_text(each) for each in found if isinstance(each, str)}


def _payload(record: Record) -> dict[str, Any]:
    """Others may have written anything; what is no JSON object tells nothing."""
    try:
        payload = record.payload
    except StoreError:
        return {}
    return payload if isinstance(payload, dict) else {}
