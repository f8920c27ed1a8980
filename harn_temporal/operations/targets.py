"""Finding the dispatches that an operation is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harn_temporal.contracts import EventAddress
from harn_temporal.errors import NotFoundError, StoreError
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.bindings import StoredBinding
from harn_temporal.eventlog.event_index import EventPlace, place_of
from harn_temporal.eventlog.log import EventLog, Reader, Record
from harn_temporal.operations.audit import AuditTarget
from harn_temporal.operations.progress import Key, Progress, progress
from harn_temporal.operations.where import Where
from harn_temporal.queue.under_way import JobUnderWay, jobs_under_way
from harn_temporal.unknown_names import unknown_name

PAGE = 500
"""Events looked at in one query. Each may be 10 MiB: only one of them is in memory at a time."""


@dataclass(frozen=True, slots=True)
class Target:
    """An event for a binding, and how far its first dispatch has come.

    `package` is empty where no package of ours knows the binding. `address` is where a record
    with the event lies, its envelope or what Harn wrote for replays.
    """

    event_id: str
    trigger_id: str
    version: int | None
    binding_key: str
    package: str
    address: EventAddress
    progress: Progress

    def audited(self) -> AuditTarget:
        return AuditTarget(self.event_id, self.binding_key, self.progress.status)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which dispatches are meant: those of an event, or all for which `where` holds.

    `trigger` is a trigger's id, or one version of it as `id@vN`. With `jobs` those jobs of worker
    queues are meant too that a consumer holds: dispatches of its own binding.
    """

    event_id: str | None = None
    where: Where | None = None
    trigger: str | None = None
    jobs: bool = False

    @property
    def filter(self) -> str | None:
        return None if self.where is None else self.where.source


async def select(log: EventLog, selection: Selection) -> list[Target]:
    """The dispatches meant, by event id and binding.

    An event is looked up, whatever else the store holds; for an expression every event is looked
    at, and read where the expression asks for it, one at a time.

    Raises NotFoundError for an event or a trigger that the store does not know, naming the
    nearest ones, and ExpressionError where `where` fails for an event.
    """
    bindings = await log.query(lambda reader: reader.bindings.states())
    _check_trigger(selection.trigger, bindings)
    search = _Search(selection, bindings)
    found: list[Target] = []
    if selection.event_id is not None:
        found += await log.query(search.of_event)
    else:
        while True:
            some = await log.query(search.page)
            found += some
            if search.ended:
                break
    if selection.jobs:
        found += await log.query(search.jobs)
    if not found and selection.event_id is not None:
        raise NotFoundError(await log.query(search.unknown_event))
    return sorted(found, key=lambda target: (target.event_id, target.binding_key))


class _Search:
    """`ended` says that there are no pages left."""

    def __init__(self, selection: Selection, bindings: Sequence[StoredBinding]) -> None:
        self._selection = selection
        self._bindings = {state.binding_key: state for state in bindings}
        self._after: EventPlace | None = None
        self.ended = False

    def of_event(self, reader: Reader) -> list[Target]:
        assert self._selection.event_id is not None
        places = reader.event_index.of_event(self._selection.event_id)
        stands = progress(reader, reader.outbox.of_event(self._selection.event_id))
        return list(self._targets(reader, places, stands))

    def page(self, reader: Reader) -> list[Target]:
        """The next ones of all."""
        places = reader.event_index.page(self._after, PAGE)
        stands = progress(reader, reader.outbox.of_page(self._after, PAGE))
        found = list(self._targets(reader, places, stands))
        self.ended = len(places) < PAGE
        self._after = places[-1] if places else None
        return found

    def jobs(self, reader: Reader) -> list[Target]:
        """Jobs of worker queues that are claimed: dispatches of their consumers' bindings."""
        found: dict[Key, EventPlace] = {}
        for job in jobs_under_way(reader, self._selection.event_id):
            topic = topics.queue_topic(job.queue)
            [record] = reader.read(topic, after=job.job_event_id - 1, limit=1)
            if _payload(record).get("replay_of_event_id") is not None:
                continue
            for binding_key in self._binding_keys(job):
                place = place_of(record, job.event_id, job.trigger_id, binding_key)
                found.setdefault((place.binding_key, place.event_id), place)
        targets: list[Target] = []
        for key, place in found.items():
            ingested = reader.event_index.of_event(place.event_id)
            if all(each.binding_key != place.binding_key for each in ingested):
                known = progress(reader, reader.outbox.of_event(place.event_id))
                stands = {key: known[key]} if key in known else {}
                targets += self._targets(reader, [place], stands)
        return targets

    def _binding_keys(self, job: JobUnderWay) -> list[str]:
        """Under which the job runs. Until it has begun a claim does not tell: all that could."""
        if job.binding_key:
            return [job.binding_key]
        return [
            state.binding_key
            for state in self._bindings.values()
            if state.trigger_id == job.trigger_id
            and state.state == "active"
            and state.handler_kind != "worker"
        ]

    def unknown_event(self, reader: Reader) -> str:
        event_id = self._selection.event_id
        assert event_id is not None
        near = reader.event_index.near(event_id)
        of = "" if self._selection.trigger is None else f" for trigger {self._selection.trigger}"
        if near and event_id not in near:
            return f"no event {event_id!r} in this store. Did you mean {' or '.join(near)}?"
        return f"no event {event_id!r}{of} in this store. `harn-temporal log tail` shows new ones"

    def _targets(
        self, reader: Reader, places: Iterable[EventPlace], stands: Mapping[Key, Progress]
    ) -> Iterator[Target]:
        for place in places:
            if self._selection.trigger not in {None, place.trigger_id, place.binding_key}:
                continue
            target = self._target(reader, place, stands)
            if target is not None:
                yield target

    def _target(
        self, reader: Reader, place: EventPlace, stands: Mapping[Key, Progress]
    ) -> Target | None:
        known = stands.get((place.binding_key, place.event_id)) or Progress()
        known.cancel_requested = reader.cancel_requests.requested(place.binding_key, place.event_id)
        stored = self._bindings.get(place.binding_key)
        where = self._selection.where
        if where is not None:
            event = _event(reader, place) if where.reads_event else {"id": place.event_id}
            if event is None or not where.holds(event, _binding_json(place, stored), known):
                return None
        return Target(
            event_id=place.event_id,
            trigger_id=place.trigger_id,
            version=place.version,
            binding_key=place.binding_key,
            package=place.package or ("" if stored is None else stored.package),
            address=EventAddress(topic=place.topic, event_id=place.record_id),
            progress=known,
        )


def _event(reader: Reader, place: EventPlace) -> dict[str, Any] | None:
    records = reader.read(place.topic, after=place.record_id - 1, limit=1)
    event = _payload(records[0]).get("event") if records else None
    return event if isinstance(event, dict) else None


def _payload(record: Record) -> dict[str, Any]:
    try:
        payload = record.payload
    except StoreError:
        return {}
    return payload if isinstance(payload, dict) else {}


def _binding_json(place: EventPlace, stored: StoredBinding | None) -> dict[str, Any]:
    return {
        "id": place.trigger_id,
        "version": place.version,
        "key": place.binding_key,
        "handler_kind": None if stored is None else stored.handler_kind,
        "package": None if stored is None else stored.package or None,
    }


def _check_trigger(wanted: str | None, bindings: Sequence[StoredBinding]) -> None:
    known = {state.trigger_id for state in bindings}
    if wanted is None or wanted in known or wanted in {state.binding_key for state in bindings}:
        return
    raise NotFoundError(unknown_name("trigger", wanted, known))
