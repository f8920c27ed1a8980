"""Worker queues as they stand in a transaction: what may be asked, and what a writer may change.

A queue is named by its topic part (`safe_topic` of its name) throughout. The figures are those
of `queue ls`; the rules of claiming stand in `harn_temporal.queue`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from harn_temporal.bindings import Priority
from harn_temporal.canonical import clean_text
from harn_temporal.eventlog.queue_jobs import QueueJobs
from harn_temporal.eventlog.queue_window import QueueWindow
from harn_temporal.eventlog.statements import Row, Statements
from harn_temporal.scheduler.candidates import PRIORITIES
from harn_temporal.scheduler.policy import NO_TENANT, Policy

MOVED_AT_ONCE = 400
"""Jobs that a transaction moves to their lanes: well under 100 ms of work."""


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """`worst_deliveries` is how often the most delivered job was claimed that is not done."""

    ready: int
    delayed: int
    in_flight: int
    acked: int
    purged: int
    responses: int
    oldest_ready_at_ms: int | None
    worst_deliveries: int


@dataclass(frozen=True, slots=True)
class KeyFigures:
    key: str
    in_flight: int
    ready: int
    oldest_ready_at_ms: int | None
    credit: int
    selected_total: int
    deferred_total: int


@dataclass(frozen=True, slots=True)
class RoundFigures:
    last_key: str | None
    rounds: int
    starvations: int


@dataclass(frozen=True, slots=True)
class Opening:
    """What a claim asks first. `other_name` is that of another queue with the same topic.

    `jobs` is None where nothing was appended yet; `moved_by_time` says that time has made ready
    what nobody moved yet.
    """

    jobs: QueueJobs | None
    other_name: str | None
    paused: bool
    moved_by_time: bool


@dataclass(frozen=True, slots=True)
class Ahead:
    """`ready`: whether a job is ready, besides those that time made ready and nobody moved yet.

    `next_at_ms` is when time makes one ready: a claim expires, or a delay ends.
    """

    ready: bool
    next_at_ms: int | None


@dataclass(frozen=True, slots=True)
class Pause:
    paused_at_ms: int
    paused_by: str


@dataclass(frozen=True, slots=True)
class ListedJob:
    """`state` is ready, delayed, claimed, acked or purged; a claim that expired is none."""

    job_event_id: int
    state: str
    trigger_id: str
    binding_key: str
    tenant_id: str | None
    event_id: str
    priority: Priority
    enqueued_at_ms: int
    available_at_ms: int
    deliveries: int
    claim_id: str | None
    consumer_id: str | None
    claimed_at_ms: int | None
    expires_at_ms: int | None


@dataclass(frozen=True, slots=True)
class HeldJobRow:
    """A claimed job; `topic` is its queue's name as part of a topic."""

    topic: str
    job_event_id: int
    claim_id: str
    consumer_id: str
    event_id: str
    trigger_id: str


class QueueTables:
    """What a reader may ask. Nothing here writes."""

    def __init__(self, statements: Statements, now_ms: int) -> None:
        self._statements = statements
        self._now_ms = now_ms

    def names(self) -> dict[str, str]:
        """Every queue that was ever seen: its name, and its part of a topic."""
        return dict(self._statements.rows("queues.names"))

    def names_of(self, queue: str) -> list[str]:
        return [row[0] for row in self._statements.rows("queues.names_of", topic=queue)]

    def jobs(self, queue: str) -> QueueJobs | None:
        """None where nothing was appended for the queue yet."""
        rows = self._statements.rows("queues.id", topic=queue)
        return QueueJobs(self._statements, rows[0][0], queue) if rows else None

    def pause(self, queue: str) -> Pause | None:
        rows = self._statements.rows("queues.paused", queue=queue)
        return Pause(*rows[0]) if rows else None

    def figures(self, queue: str) -> QueueFigures:
        rows = self._statements.rows("queues.figures", topic=queue)
        if not rows:
            return QueueFigures(0, 0, 0, 0, 0, 0, None, 0)
        _, queue_id, responses, acked, purged, ready, claimed, delayed, worst, oldest = rows[0]
        moved = list(self._by_time(queue_id, "tenant").values())
        expired = sum(row[3] for row in moved)
        arrived = sum(row[2] for row in moved)
        ages = [row[1] for row in moved] + ([] if oldest is None else [oldest])
        return QueueFigures(
            ready=ready + arrived,
            delayed=delayed - (arrived - expired),
            in_flight=claimed - expired,
            acked=acked,
            purged=purged,
            responses=responses,
            oldest_ready_at_ms=min(ages, default=None),
            worst_deliveries=worst or 0,
        )

    def keys(self, queue: str, dimension: str) -> list[KeyFigures]:
        """By key; also of keys that have nothing in the queue at the moment."""
        jobs = self.jobs(queue)
        if jobs is None:
            return []
        rows = self._statements.rows("queues.credits", queue=queue, dimension=dimension)
        counts = {row[0]: row[1:] for row in rows}
        moved = self._by_time(jobs.queue_id, dimension)
        figures = []
        for key, claimed, ready, oldest in self._statements.rows(
            "queues.keys", queue_id=jobs.queue_id, dimension=dimension
        ):
            _, arrived_at, arrived, expired = moved.get(key, (key, None, 0, 0))
            ages = [age for age in (oldest, arrived_at) if age is not None]
            credit, selected, deferred = counts.get(key, (0, 0, 0))
            figures.append(
                KeyFigures(
                    key=key,
                    in_flight=claimed - expired,
                    ready=ready + arrived,
                    oldest_ready_at_ms=min(ages, default=None),
                    credit=credit,
                    selected_total=selected,
                    deferred_total=deferred,
                )
            )
        return figures

    def busy_keys(self, queue: str, dimension: str, limit: int) -> tuple[list[KeyFigures], int]:
        """Up to `limit` keys that have jobs now, longest waiting first, and how many there are.

        As much work as there are jobs in the queue, however many keys it has ever had.
        """
        jobs = self.jobs(queue)
        if jobs is None:
            return [], 0
        moved = self._by_time(jobs.queue_id, dimension)
        rows = self._statements.rows(
            "queues.busy_keys",
            queue=queue,
            queue_id=jobs.queue_id,
            dimension=dimension,
            limit=limit,
        )
        figures = []
        for key, claimed, ready, oldest, credit, selected, deferred, _ in rows:
            _, arrived_at, arrived, expired = moved.get(key, (key, None, 0, 0))
            ages = [age for age in (oldest, arrived_at) if age is not None]
            figures.append(
                KeyFigures(
                    key=key,
                    in_flight=claimed - expired,
                    ready=ready + arrived,
                    oldest_ready_at_ms=min(ages, default=None),
                    credit=credit,
                    selected_total=selected,
                    deferred_total=deferred,
                )
            )
        return figures, rows[0][-1] if rows else 0

    def round(self, queue: str, dimension: str) -> RoundFigures:
        rows = self._statements.rows("queues.round", queue=queue, dimension=dimension)
        return RoundFigures(*rows[0][:3]) if rows else RoundFigures(None, 0, 0)

    def waiting_since(self, queue: str, until_ms: int) -> int:
        """How many ready jobs could have been claimed at `until_ms` already."""
        jobs = self.jobs(queue)
        if jobs is None:
            return 0
        rows = self._statements.rows(
            "queues.waiting_since", queue_id=jobs.queue_id, until_ms=until_ms
        )
        return int(rows[0][0])

    def listed(self, queue: str, after: int = 0, limit: int = 1000) -> list[ListedJob]:
        """Jobs after the id `after`, in order."""
        jobs = self.jobs(queue)
        if jobs is None:
            return []
        rows = self._statements.rows(
            "queues.list", queue_id=jobs.queue_id, after=after, limit=limit
        )
        return [_listed(row, self._now_ms) for row in rows]

    def held(self, event_id: str | None = None) -> list[HeldJobRow]:
        """Claimed jobs of all queues, or those about one event; as much work as there are any."""
        rows = self._statements.rows("queues.held", event_id=clean_text(event_id or ""))
        return [HeldJobRow(*row) for row in rows]

    def ahead(self, jobs: QueueJobs) -> Ahead:
        ready, expiry, due = self._statements.rows("queues.ahead", queue_id=jobs.queue_id)[0]
        return Ahead(bool(ready), min((t for t in (expiry, due) if t is not None), default=None))

    def unclaimed(self, queue: str, after: int, limit: int) -> list[int]:
        """Ids of jobs that are ready or delayed, in order."""
        jobs = self.jobs(queue)
        if jobs is None:
            return []
        rows = self._statements.rows(
            "queues.unclaimed",
            queue_id=jobs.queue_id,
            now_ms=self._now_ms,
            after=after,
            limit=limit,
        )
        return [row[0] for row in rows]

    def _by_time(self, queue_id: int, dimension: str) -> dict[str, Row]:
        rows = self._statements.rows(
            "queues.ready_by_time", queue_id=queue_id, dimension=dimension, now_ms=self._now_ms
        )
        return {row[0]: row for row in rows}


class QueueStore(QueueTables):
    """What a writer may change besides appending; only inside a write transaction."""

    def window(
        self, jobs: QueueJobs, policy: Policy, excluded: Collection[str], wanted: int
    ) -> QueueWindow:
        return QueueWindow(
            self._statements, jobs.queue_id, jobs.topic, policy, excluded=excluded, wanted=wanted
        )

    def opening(self, queue: str, name: str) -> Opening:
        queue_id, other_name, paused, moved = self._statements.rows(
            "queues.opening", topic=queue, queue=name, now_ms=self._now_ms
        )[0]
        jobs = None if queue_id is None else QueueJobs(self._statements, queue_id, queue)
        return Opening(jobs, other_name, bool(paused), bool(moved))

    def move_by_time(self, jobs: QueueJobs) -> bool:
        """Move jobs to their lanes whose claim has expired, or whose delay has ended.

        A bounded number of them; returns whether that were all.
        """
        rows = self._statements.rows(
            "queues.moved_by_time",
            queue_id=jobs.queue_id,
            now_ms=self._now_ms,
            limit=MOVED_AT_ONCE,
        )
        for (job_id,) in rows:
            job = jobs.find(job_id)
            if job is not None:
                jobs.move(job_id, job, self._now_ms)
        jobs.flush()
        return len(rows) < MOVED_AT_ONCE

    def set_pause(self, queue: str, paused_by: str) -> None:
        self._statements.run("queues.pause", queue=queue, now_ms=self._now_ms, paused_by=paused_by)

    def lift_pause(self, queue: str) -> bool:
        return self._statements.run("queues.resume", queue=queue) > 0


def _listed(row: Row, now_ms: int) -> ListedJob:
    job_id, trigger_id, binding_key, tenant, rank, enqueued, due, event_id, *rest = row
    acked, purged, claim_id, consumer_id, claimed_at, expires_at, deliveries = rest
    held = not acked and not purged and claim_id != "" and expires_at > now_ms
    if acked:
        state = "acked"
    elif purged:
        state = "purged"
    elif held:
        state = "claimed"
    else:
        state = "delayed" if due > max(now_ms, enqueued) else "ready"
    return ListedJob(
        job_event_id=job_id,
        state=state,
        trigger_id=trigger_id,
        binding_key=binding_key,
        tenant_id=None if tenant == NO_TENANT else tenant,
        event_id=event_id,
        priority=PRIORITIES[rank],
        enqueued_at_ms=enqueued,
        available_at_ms=due,
        deliveries=deliveries,
        claim_id=claim_id if held else None,
        consumer_id=consumer_id if held else None,
        claimed_at_ms=claimed_at if held else None,
        expires_at_ms=expires_at if held else None,
    )
