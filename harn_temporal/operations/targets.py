"""Finding the dispatches that an operation is about."""

from __future__ import annotations

import difflib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from harn_temporal import headers
from harn_temporal.contracts import EventAddress
from harn_temporal.errors import NotFoundError, StoreError
from harn_temporal.event_address import address_of
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.bindings import StoredBinding
from harn_temporal.eventlog.log import EventLog, Reader, Record
from harn_temporal.inspection.paging import topics_like
from harn_temporal.operations.audit import AuditTarget
from harn_temporal.operations.progress import Key, Progress, progress
from harn_temporal.operations.where import Where
from harn_temporal.queue.under_way import JobUnderWay, jobs_under_way

PAGE = 50
"""Events read at once: each may be 10 MiB."""

_KINDS = frozenset({"event_ingested", "trigger_event"})

NEAREST_OF = 5_000
"""Event ids of which the nearest to an unknown one is looked for: the latest."""


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
    tenant_id: str | None
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

    Raises NotFoundError for an event or a trigger that the store does not know, naming the
    nearest ones, and ExpressionError where `where` fails for an event.
    """
    search = await _Search.begin(log, selection)
    found = [target async for target in search.targets()]
    if not found and selection.event_id is not None:
        raise NotFoundError(search.unknown_event(selection.event_id))
    return sorted(found, key=lambda target: (target.event_id, target.binding_key))


class _Search:
    def __init__(
        self,
        log: EventLog,
        selection: Selection,
        bindings: Sequence[StoredBinding],
        known: dict[Key, Progress],
    ) -> None:
        self._log = log
        self._selection = selection
        self._bindings = {state.binding_key: state for state in bindings}
        self._known = known
        self._seen: set[Key] = set()
        self._ids: dict[str, None] = {}

    @classmethod
    async def begin(cls, log: EventLog, selection: Selection) -> _Search:
        bindings = await log.query(lambda reader: reader.bindings.states())
        _check_trigger(selection.trigger, bindings)
        known = await progress(log, selection.event_id)
        return cls(log, selection, bindings, known)

    async def targets(self) -> AsyncIterator[Target]:
        plain = (topics.INBOX_ENVELOPES, topics.INBOX_LEGACY, topics.TRIGGERS_EVENTS)
        for topic in [name for each in plain for name in await topics_like(self._log, each)]:
            async for record in _pages(self._log, topic):
                target = await self._target(record)
                if target is not None:
                    yield target
        running = await self._log.query(self._jobs) if self._selection.jobs else ()
        for record, named in running:
            target = await self._target(record, named)
            if target is not None:
                yield target

    def _jobs(self, reader: Reader) -> list[tuple[Record, _Named]]:
        """Jobs of worker queues that are claimed: dispatches of their consumers' bindings."""
        found = []
        for job in jobs_under_way(reader, self._selection.event_id):
            topic = topics.queue_topic(job.queue)
            record = reader.read(topic, after=job.job_event_id - 1, limit=1)[0]
            if _payload(record).get("replay_of_event_id") is not None:
                continue
            for binding_key in self._binding_keys(job):
                named = _named_by(job.event_id, job.trigger_id, binding_key)
                if self._is_wanted(named):
                    found.append((record, named))
        return found

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

    def unknown_event(self, event_id: str) -> str:
        near = difflib.get_close_matches(event_id, [*self._ids][-NEAREST_OF:], n=3, cutoff=0.8)
        if near:
            return f"no event {event_id!r} in this store. Did you mean {' or '.join(near)}?"
        of = "" if self._selection.trigger is None else f" for trigger {self._selection.trigger}"
        return f"no event {event_id!r}{of} in this store. `harn-temporal log tail` shows new ones"

    async def _target(self, record: Record, named: _Named | None = None) -> Target | None:
        named = named or self._wanted(record)
        event = None if named is None else _event(record)
        if named is None or event is None:
            return None
        event_id, binding_key = named.event_id, named.binding_key
        self._seen.add((binding_key, event_id))
        stands = self._known.get((binding_key, event_id), Progress())
        stands.cancel_requested = await self._log.query(
            lambda reader: reader.cancel_requests.requested(binding_key, event_id)
        )
        stored = self._bindings.get(binding_key)
        where = self._selection.where
        if where is not None and not where.holds(event, _binding_json(named, stored), stands):
            return None
        tenant_id = event.get("tenant_id")
        package = "" if stored is None else stored.package
        return Target(
            event_id=event_id,
            trigger_id=named.trigger_id,
            version=named.version,
            binding_key=binding_key,
            tenant_id=tenant_id if isinstance(tenant_id, str) else None,
            package=record.headers.get(headers.PACKAGE) or package,
            address=address_of(record),
            progress=stands,
        )

    def _wanted(self, record: Record) -> _Named | None:
        """Whose event a record holds, where it is meant and was not met before."""
        if record.kind not in _KINDS or headers.REPLAY in record.headers:
            return None
        named = _named(record)
        if named is None:
            return None
        return named if self._is_wanted(named) else None

    def _is_wanted(self, named: _Named) -> bool:
        if self._selection.trigger not in {None, named.trigger_id, named.binding_key}:
            return False
        wanted = self._selection.event_id
        if wanted is not None:
            self._ids[named.event_id] = None
        met = (named.binding_key, named.event_id) in self._seen
        return not met and wanted in {None, named.event_id}


@dataclass(frozen=True, slots=True)
class _Named:
    event_id: str
    trigger_id: str
    version: int | None

    @property
    def binding_key(self) -> str:
        return self.trigger_id if self.version is None else f"{self.trigger_id}@v{self.version}"


def _named(record: Record) -> _Named | None:
    """Whose event a record holds: by its headers where they tell, since an event may be large."""
    found = record.headers
    event_id, trigger_id = found.get("event_id"), found.get("trigger_id")
    if event_id is not None and trigger_id is not None and "binding_key" in found:
        named = _named_by(event_id, trigger_id, found["binding_key"])
        return None if headers.REPLAY_OF in found else named
    payload = _payload(record)
    event, version = payload.get("event"), payload.get("binding_version")
    event_id = event.get("id") if isinstance(event, dict) else None
    trigger_id = payload.get("trigger_id", payload.get("binding_id"))
    first = payload.get("replay_of_event_id") is None
    if not first or not isinstance(event_id, str) or not isinstance(trigger_id, str):
        return None
    return _Named(event_id, trigger_id, version if isinstance(version, int) and version else None)


def _named_by(event_id: str, trigger_id: str, binding_key: str) -> _Named:
    _, mark, written = binding_key.rpartition("@v")
    decimal = bool(mark) and written.isascii() and written.isdecimal()
    return _Named(event_id, trigger_id, int(written) if decimal else None)


def _event(record: Record) -> dict[str, Any] | None:
    event = _payload(record).get("event")
    return event if isinstance(event, dict) else None


def _payload(record: Record) -> dict[str, Any]:
    try:
        payload = record.payload
    except StoreError:
        return {}
    return payload if isinstance(payload, dict) else {}


def _binding_json(named: _Named, stored: StoredBinding | None) -> dict[str, Any]:
    return {
        "id": named.trigger_id,
        "version": named.version,
        "key": named.binding_key,
        "handler_kind": None if stored is None else stored.handler_kind,
        "package": None if stored is None else stored.package or None,
    }


async def _pages(log: EventLog, topic: str) -> AsyncIterator[Record]:
    after = 0
    while page := await log.read(topic, after, PAGE):
        for record in page:
            yield record
        after = page[-1].event_id


def _check_trigger(wanted: str | None, bindings: Sequence[StoredBinding]) -> None:
    known = sorted({state.trigger_id for state in bindings})
    if wanted is None or wanted in known or wanted in {state.binding_key for state in bindings}:
        return
    near = difflib.get_close_matches(wanted, known, n=3)
    hint = (
        f"Did you mean {' or '.join(near)}?" if near else f"It knows: {', '.join(known) or 'none'}"
    )
    raise NotFoundError(f"no trigger {wanted!r} in this store. {hint}")
