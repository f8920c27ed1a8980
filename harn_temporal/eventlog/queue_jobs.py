"""The jobs of a queue as the projection keeps them: where each one lies, and what moves it.

A job lies in one place: ready in its lane, claimed, delayed, or nowhere. Time moves no row: a
claim that has expired lies among the claimed, and is moved to its lane by who looks for ready
jobs next. So does a delay that has ended.
"""

from __future__ import annotations

from dataclasses import dataclass

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

    def claimed_at(self, now_ms: int) -> bool:
        """Whether a claim holds the job: one that expires now holds it no more."""
        return not self.ended and self.claim_id != "" and self.expires_at_ms > now_ms

    def delayed_at(self, now_ms: int) -> bool:
        """A job without a delay is ready even where its producer's clock is ahead of ours."""
        return self.due_at_ms > max(now_ms, self.enqueued_at_ms)


class QueueJobs:
    """The jobs of one queue. `topic` is its name as part of a topic."""

    def __init__(self, statements: Statements, queue_id: int, topic: str) -> None:
        self._statements = statements
        self.queue_id = queue_id
        self.topic = topic

    def find(self, job_id: int) -> Job | None:
        rows = self._statements.rows("queues.job", queue_id=self.queue_id, job_id=job_id)
        return Job(*rows[0]) if rows else None

    def add(self, job_id: int, job: Job) -> None:
        """A job that is not known in any way yet."""
        job.place = _place(job)
        self._statements.run(
            "queues.add_job",
            queue_id=self.queue_id,
            job_id=job_id,
            present=job.present,
            group_id=job.group_id,
            rank=job.rank,
            enqueued_at_ms=job.enqueued_at_ms,
            due_at_ms=job.due_at_ms,
            event_id=job.event_id,
            acked=job.acked,
            purged=job.purged,
            place=job.place,
            claim_id=job.claim_id,
            consumer_id=job.consumer_id,
            claimed_at_ms=job.claimed_at_ms,
            expires_at_ms=job.expires_at_ms,
            deliveries=job.deliveries,
        )
        self._moved(job_id, job, NOWHERE)
        self._ended(job, acked=0, purged=0)

    def appear(self, job_id: int, job: Job) -> None:
        """The job itself, after records that are about it."""
        job.present = 1
        job.place = _place(job)
        self._statements.run(
            "queues.appear",
            queue_id=self.queue_id,
            job_id=job_id,
            group_id=job.group_id,
            rank=job.rank,
            enqueued_at_ms=job.enqueued_at_ms,
            due_at_ms=job.due_at_ms,
            event_id=job.event_id,
            place=job.place,
        )
        self._moved(job_id, job, NOWHERE)
        self._ended(job, acked=0, purged=0)

    def change(self, job_id: int, job: Job, *, acked: int = 0, purged: int = 0) -> None:
        """Save what happened to a job. `acked` and `purged` are what they were before."""
        before = job.place
        job.place = _place(job)
        self._save(job_id, job, before)
        if job.acked != acked or job.purged != purged:
            self._ended(job, acked=acked, purged=purged)

    def move(self, job_id: int, job: Job, now_ms: int) -> None:
        """Put a job where it belongs at a time."""
        before = job.place
        job.place = _place(job)
        if job.place == CLAIMED and job.expires_at_ms <= now_ms:
            job.place = DELAYED
        if job.place == DELAYED and not job.delayed_at(now_ms):
            job.place = READY
        if job.place != before:
            self._save(job_id, job, before)

    def _save(self, job_id: int, job: Job, before: int) -> None:
        self._statements.run(
            "queues.change",
            queue_id=self.queue_id,
            job_id=job_id,
            acked=job.acked,
            purged=job.purged,
            place=job.place,
            claim_id=job.claim_id,
            consumer_id=job.consumer_id,
            claimed_at_ms=job.claimed_at_ms,
            expires_at_ms=job.expires_at_ms,
            deliveries=job.deliveries,
        )
        self._moved(job_id, job, before)

    def _moved(self, job_id: int, job: Job, before: int) -> None:
        after = job.place
        if after == before:
            return
        lane = {"group_id": job.group_id, "rank": job.rank}
        if before == READY:
            self._statements.run("queues.leave_lane", **lane)
        elif after == READY:
            rows = self._statements.rows(
                "queues.enter_lane",
                **lane,
                queue_id=self.queue_id,
                due_at_ms=job.due_at_ms,
                job_id=job_id,
            )
            if rows[0][0] == 1:
                self._statements.run("queues.rouse", queue=self.topic, group_id=job.group_id)
        if CLAIMED in (before, after):
            self._statements.run(
                "queues.count_claimed",
                group_id=job.group_id,
                change=1 if after == CLAIMED else -1,
            )

    def _ended(self, job: Job, *, acked: int, purged: int) -> None:
        """Count how jobs end; a job that was purged and acked counts as acked."""
        if not job.present:
            return
        change = (
            job.acked - acked,
            (job.purged and not job.acked) - (purged and not acked),
        )
        if any(change):
            self._statements.run(
                "queues.count_ended", queue_id=self.queue_id, acked=change[0], purged=change[1]
            )


def _place(job: Job) -> int:
    """Where a job lies as far as records say; time may have moved it on since."""
    if not job.present or job.ended:
        return NOWHERE
    if job.claim_id:
        return CLAIMED
    return DELAYED if job.due_at_ms > job.enqueued_at_ms else READY
