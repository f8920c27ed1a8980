"""The jobs of a queue as the projection keeps them: where each one lies, and what moves it.

A job lies in one place: ready in its lane, claimed, delayed, or nowhere. Time moves no row: a
claim that has expired lies among the claimed, and is moved to its lane by who looks for ready
jobs next. So does a delay that has ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from harn_temporal.eventlog.statements import Statements

NOWHERE, READY, CLAIMED, DELAYED = range(4)


@dataclass(slots=True)
class Job:
    """A row of `@queue_jobs`. `claim_id` is that of the active claim, or of the ack; or empty."""

    present: int = 0
    group_id: int = 0
    rank: int = 0
    enqueued_at_ms: int = 0
    due_at_ms: int = 0
    event_id: str = ""
    acked: int = 0
    purged: int = 0
    place: int = NOWHERE
    claim_id: str = ""
    consumer_id: str = ""
    claimed_at_ms: int = 0
    expires_at_ms: int = 0
    deliveries: int = 0

    @property
    def ended(self) -> bool:
        return bool(self.acked or self.purged)

    def claimed_by(self, claim_id: str) -> bool:
        """Whether this is the active claim, expired or not: nobody else took the job since."""
        return claim_id != "" and claim_id == self.claim_id and not self.ended

    def delayed_at(self, now_ms: int) -> bool:
        """A job without a delay is ready even where its producer's clock is ahead of ours."""
        return self.due_at_ms > max(now_ms, self.enqueued_at_ms)


class QueueJobs:
    """The jobs of one queue, each read once; changes are written by `flush`.

    `topic` is the queue's name as part of a topic.
    """

    def __init__(self, statements: Statements, queue_id: int, topic: str) -> None:
        self._statements = statements
        self.queue_id = queue_id
        self.topic = topic
        self._jobs: dict[int, Job] = {}
        self._before: dict[int, _Before] = {}
        self._changed: set[int] = set()
        self._groups: dict[GroupName, int] = {}
        self._names: set[str] = set()

    def find(self, job_id: int) -> Job | None:
        job = self._jobs.get(job_id)
        if job is None:
            rows = self._statements.rows("queues.job", queue_id=self.queue_id, job_id=job_id)
            if not rows:
                return None
            job = self._jobs[job_id] = Job(*rows[0])
            self._before[job_id] = _Before(job.present, job.place, *_counts(job))
        return job

    def change(self, job_id: int, job: Job) -> None:
        """Note what happened to a job, of which nothing needs to be known so far."""
        job.place = _place(job)
        self._jobs[job_id] = job
        self._changed.add(job_id)

    def move(self, job_id: int, job: Job, now_ms: int) -> None:
        """Put a job where it belongs at a time."""
        self.change(job_id, job)
        if job.place == CLAIMED and job.expires_at_ms <= now_ms:
            job.place = DELAYED
        if job.place == DELAYED and not job.delayed_at(now_ms):
            job.place = READY

    def group(self, name: GroupName, find: Callable[[], int]) -> int:
        if name not in self._groups:
            self._groups[name] = find()
        return self._groups[name]

    def add_name(self, name: str) -> None:
        if name not in self._names:
            self._names.add(name)
            self._statements.run("queues.name", queue=name, topic=self.topic)

    def flush(self) -> None:
        if not self._changed:
            return
        added: list[dict[str, Any]] = []
        appeared: list[dict[str, Any]] = []
        saved: list[dict[str, Any]] = []
        lanes: Counter[tuple[int, int]] = Counter()
        claimed: Counter[int] = Counter()
        ended = [0, 0]
        for job_id in sorted(self._changed):
            job = self._jobs[job_id]
            before = self._before.get(job_id)
            if before is None:
                before = _NOTHING
                added.append(self._row(job_id, job))
            elif job.present and not before.present:
                appeared.append(self._row(job_id, job))
            else:
                saved.append(self._row(job_id, job))
            lanes[job.group_id, job.rank] += (job.place == READY) - (before.place == READY)
            claimed[job.group_id] += (job.place == CLAIMED) - (before.place == CLAIMED)
            acked, purged = _counts(job)
            ended[0] += acked - before.acked
            ended[1] += purged - before.purged
            self._before[job_id] = _Before(job.present, job.place, acked, purged)
        self._changed.clear()
        self._statements.run_many("queues.add_job", added)
        self._statements.run_many("queues.appear", appeared)
        self._statements.run_many("queues.change", saved)
        self._count(lanes, claimed, ended)

    def _count(
        self, lanes: Counter[tuple[int, int]], claimed: Counter[int], ended: list[int]
    ) -> None:
        turned: set[int] = set()
        for (group_id, rank), change in lanes.items():
            if not group_id:
                continue
            # A lane whose count is as before may still have another oldest job.
            [(ready,)] = self._statements.rows(
                "queues.change_lane", group_id=group_id, rank=rank, change=change
            )
            if (ready == 0) != (ready == change):
                turned.add(group_id)
        self._statements.run_many("queues.note_ready", [{"group_id": each} for each in turned])
        self._statements.run_many(
            "queues.count_claimed",
            [{"group_id": group, "change": change} for group, change in claimed.items() if change],
        )
        roused = {group_id for (group_id, _), change in lanes.items() if change > 0}
        if roused and self._statements.rows("queues.any_idle", queue=self.topic):
            self._statements.run_many(
                "queues.rouse", [{"queue": self.topic, "group_id": group} for group in roused]
            )
        if any(ended):
            self._statements.run(
                "queues.count_ended", queue_id=self.queue_id, acked=ended[0], purged=ended[1]
            )

    def _row(self, job_id: int, job: Job) -> dict[str, Any]:
        return {
            "queue_id": self.queue_id,
            "job_id": job_id,
            "present": job.present,
            "group_id": job.group_id,
            "rank": job.rank,
            "enqueued_at_ms": job.enqueued_at_ms,
            "due_at_ms": job.due_at_ms,
            "event_id": job.event_id,
            "acked": job.acked,
            "purged": job.purged,
            "place": job.place,
            "claim_id": job.claim_id,
            "consumer_id": job.consumer_id,
            "claimed_at_ms": job.claimed_at_ms,
            "expires_at_ms": job.expires_at_ms,
            "deliveries": job.deliveries,
        }


GroupName = tuple[str | None, str, str]
"""What groups jobs: tenant, trigger id, binding key."""


class _Before(NamedTuple):
    present: int
    place: int
    acked: int
    purged: int


_NOTHING = _Before(0, NOWHERE, 0, 0)


def _counts(job: Job) -> tuple[int, int]:
    """Acked and purged; a job that was purged and acked all the same counts as acked."""
    if not job.present:
        return 0, 0
    return job.acked, int(job.purged and not job.acked)


def _place(job: Job) -> int:
    """Where a job lies as far as records say; time may have moved it on since."""
    if not job.present or job.ended:
        return NOWHERE
    if job.claim_id:
        return CLAIMED
    return DELAYED if job.due_at_ms > job.enqueued_at_ms else READY
