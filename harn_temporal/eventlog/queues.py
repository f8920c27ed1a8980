"""The projection of worker queues: the fold of their records, as every reader of the log does it.

A claim, an ack or a purge may be folded before its job: it is kept in the job's row, which is
not `present` until the job itself is folded.
"""

from __future__ import annotations

from typing import Any

from harn_temporal.canonical import clean_text
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.fields import Malformed, integer, mapping, text
from harn_temporal.eventlog.queue_jobs import Job, QueueJobs
from harn_temporal.eventlog.records import Record
from harn_temporal.eventlog.statements import Statements
from harn_temporal.headers import AVAILABLE_AT_MS
from harn_temporal.scheduler.candidates import PRIORITIES, RANKS
from harn_temporal.scheduler.policy import fairness_keys

_LATEST_MS = 2**62
"""A delay beyond this is no time."""


class QueuesProjection:
    name = "queues"
    version = 3

    def folds(self, topic: str) -> bool:
        return topic.startswith(topics.WORKER_PREFIX)

    def folder(self, statements: Statements) -> QueueFolder:
        return QueueFolder(statements)

    def fold(self, statements: Statements, record: Record) -> None:
        folder = self.folder(statements)
        folder.fold(record)
        folder.finish()


class QueueFolder:
    """Jobs are read once and written once in a batch, each lane and each group likewise."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._queues: dict[str, QueueJobs] = {}

    def fold(self, record: Record) -> None:
        if record.topic == topics.WORKER_QUEUES:
            _fold_name(self._statements, record)
            return
        queue, part = topics.parse_queue_topic(record.topic)
        payload = mapping(record)
        if part == "jobs":
            _expect(record, "trigger_dispatch")
            _fold_job(self._jobs(queue), self._statements, record, payload)
        elif part == "claims":
            fold_claim = _CLAIMS.get(record.kind)
            if fold_claim is None:
                raise Malformed(f"has the unknown kind {record.kind!r}")
            fold_claim(self._jobs(queue), self._statements, payload)
        else:
            _expect(record, "job_response")
            integer(payload, "job_event_id")
            self._statements.run("queues.respond", queue_id=self._jobs(queue).queue_id)

    def finish(self) -> None:
        for jobs in self._queues.values():
            jobs.flush()

    def _jobs(self, queue: str) -> QueueJobs:
        found = self._queues.get(queue)
        if found is None:
            rows = self._statements.rows("queues.id", topic=queue)
            if not rows:
                rows = self._statements.rows("queues.add", topic=queue)
            found = self._queues[queue] = QueueJobs(self._statements, rows[0][0], queue)
        return found


def _expect(record: Record, kind: str) -> None:
    if record.kind != kind:
        raise Malformed(f"has the unknown kind {record.kind!r}")


def _fold_name(statements: Statements, record: Record) -> None:
    _expect(record, "queue_seen")
    name = text(mapping(record), "queue")
    statements.run("queues.name", queue=name, topic=topics.safe_topic(name))


def _fold_job(
    jobs: QueueJobs, statements: Statements, record: Record, payload: dict[str, Any]
) -> None:
    name = text(payload, "queue")
    event = payload.get("event")
    if not isinstance(event, dict):
        raise Malformed("has no JSON object in event")
    tenant = event.get("tenant_id")
    if tenant is not None and (not isinstance(tenant, str) or not tenant):
        raise Malformed("has a tenant_id that is no text")
    priority = payload.get("priority", "normal")
    if priority not in PRIORITIES:
        raise Malformed(f"has the unknown priority {priority!r}")
    trigger_id, binding_key = text(payload, "trigger_id"), text(payload, "binding_key")
    if not trigger_id or not binding_key:
        raise Malformed("has an empty trigger_id or binding_key")
    event_id = text(event, "id")
    group_id = jobs.group(
        (tenant, trigger_id, binding_key),
        lambda: _group(statements, jobs.queue_id, tenant, trigger_id, binding_key),
    )
    job = jobs.find(record.event_id)
    if job is not None and job.present:
        return
    appears = job or Job()
    appears.present = 1
    appears.group_id = group_id
    appears.rank = PRIORITIES.index(priority)
    appears.enqueued_at_ms = record.occurred_at_ms
    appears.due_at_ms = _due_at_ms(record)
    appears.event_id = event_id
    jobs.change(record.event_id, appears)
    jobs.add_name(name)


def _due_at_ms(record: Record) -> int:
    found = record.headers.get(AVAILABLE_AT_MS, "")
    if found.isascii() and found.isdecimal() and len(found) <= len(str(_LATEST_MS)):
        return max(record.occurred_at_ms, min(int(found), _LATEST_MS))
    return record.occurred_at_ms


def _group(
    statements: Statements, queue_id: int, tenant: str | None, trigger_id: str, binding_key: str
) -> int:
    keys = fairness_keys(None if tenant is None else clean_text(tenant), trigger_id, binding_key)
    place = {
        "queue_id": queue_id,
        "tenant": keys["tenant"],
        "trigger_id": trigger_id,
        "binding_key": binding_key,
    }
    rows = statements.rows("queues.group", **place)
    if rows:
        return int(rows[0][0])
    group_id = int(statements.rows("queues.add_group", **place)[0][0])
    statements.run_many(
        "queues.add_key",
        [
            {"queue_id": queue_id, "dimension": dimension, "key": key, "group_id": group_id}
            for dimension, key in keys.items()
        ],
    )
    statements.run_many(
        "queues.add_lane",
        [{"queue_id": queue_id, "group_id": group_id, "rank": rank} for rank in RANKS],
    )
    return group_id


def _fold_claimed(jobs: QueueJobs, statements: Statements, payload: dict[str, Any]) -> None:
    job_id = integer(payload, "job_event_id")
    claim_id, consumer_id = text(payload, "claim_id"), text(payload, "consumer_id")
    if not claim_id:
        raise Malformed("has no text in claim_id")
    claimed_at_ms = integer(payload, "claimed_at_ms")
    expires_at_ms = integer(payload, "expires_at_ms")
    job = jobs.find(job_id) or Job()
    if job.ended:
        return
    if job.claim_id and job.expires_at_ms > claimed_at_ms:
        _see(jobs, statements, job_id, job, claim_id)
        return  # its row is there: it holds the active claim
    if job.claim_id:
        previous, job.claim_id = job.claim_id, claim_id
        _see(jobs, statements, job_id, job, previous)
    job.claim_id, job.consumer_id = claim_id, consumer_id
    job.claimed_at_ms, job.expires_at_ms = claimed_at_ms, expires_at_ms
    job.deliveries += 1
    jobs.change(job_id, job)


def _fold_renewed(jobs: QueueJobs, _statements: Statements, payload: dict[str, Any]) -> None:
    job_id, claim_id = integer(payload, "job_event_id"), text(payload, "claim_id")
    expires_at_ms = integer(payload, "expires_at_ms")
    job = jobs.find(job_id)
    if job is not None and job.claimed_by(claim_id):
        job.expires_at_ms = expires_at_ms
        jobs.change(job_id, job)


def _fold_released(jobs: QueueJobs, statements: Statements, payload: dict[str, Any]) -> None:
    job_id, claim_id = integer(payload, "job_event_id"), text(payload, "claim_id")
    job = jobs.find(job_id)
    if job is not None and job.claimed_by(claim_id):
        job.claim_id = job.consumer_id = ""
        job.claimed_at_ms = job.expires_at_ms = 0
        _see(jobs, statements, job_id, job, claim_id)
        jobs.change(job_id, job)


def _fold_acked(jobs: QueueJobs, statements: Statements, payload: dict[str, Any]) -> None:
    job_id, claim_id = integer(payload, "job_event_id"), text(payload, "claim_id")
    job = jobs.find(job_id)
    if job is None:
        if claim_id:
            return
        job = Job()
    if job.acked or not _was_seen(jobs, statements, job_id, job, claim_id):
        return
    job.claim_id, job.acked = claim_id, 1
    jobs.change(job_id, job)


def _fold_purged(jobs: QueueJobs, _statements: Statements, payload: dict[str, Any]) -> None:
    job_id = integer(payload, "job_event_id")
    job = jobs.find(job_id) or Job()
    if not job.ended:
        job.purged = 1
        jobs.change(job_id, job)


def _see(jobs: QueueJobs, statements: Statements, job_id: int, job: Job, claim_id: str) -> None:
    """Remember a claim beside the one in the job's row."""
    if claim_id != job.claim_id:
        statements.run("queues.see_claim", queue_id=jobs.queue_id, job_id=job_id, claim_id=claim_id)


def _was_seen(
    jobs: QueueJobs, statements: Statements, job_id: int, job: Job, claim_id: str
) -> bool:
    if claim_id in ("", job.claim_id):
        return True
    return bool(
        statements.rows(
            "queues.saw_claim", queue_id=jobs.queue_id, job_id=job_id, claim_id=claim_id
        )
    )


_CLAIMS = {
    "job_claimed": _fold_claimed,
    "claim_renewed": _fold_renewed,
    "job_released": _fold_released,
    "job_acked": _fold_acked,
    "job_purged": _fold_purged,
}
