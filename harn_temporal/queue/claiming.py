"""Claiming jobs: the one place where the policy meets the queue."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from harn_temporal.canonical import clean_text
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.log import Transaction
from harn_temporal.eventlog.queue_jobs import Job, QueueJobs
from harn_temporal.eventlog.ready_jobs import ReadyJob
from harn_temporal.eventlog.records import Append, Record
from harn_temporal.eventlog.topics import safe_topic
from harn_temporal.queue.models import Claim, ClaimOrder, Claims
from harn_temporal.queue.names import checked_queue
from harn_temporal.scheduler import Policy, Receipt, receipt, select


def claim(tx: Transaction, order: ClaimOrder, policy: Policy) -> Claims:
    """Take ready jobs, in the order of the policy, for `ttl_ms` from now on the store's clock.

    The balances that the policy keeps are moved on in the same transaction. Where hundreds of
    claims have just expired, only some of their jobs are looked at; `claim_caught_up` waits.
    """
    found = _claim(tx, order, policy, partly=True)
    assert found is not None  # only a caller that wants all of them gets None
    return found


def claim_caught_up(tx: Transaction, order: ClaimOrder, policy: Policy) -> Claims | None:
    """As `claim`; but None, to be called again, while time has made more jobs ready.

    Those that it could move to their lanes in this transaction are moved.
    """
    return _claim(tx, order, policy, partly=False)


def _claim(tx: Transaction, order: ClaimOrder, policy: Policy, *, partly: bool) -> Claims | None:
    queue = safe_topic(order.queue)
    opening = tx.queues.opening(queue, order.queue)
    if opening.jobs is None or opening.other_name is not None:
        checked_queue(tx, order.queue)
    jobs = opening.jobs
    if jobs is None:
        return Claims(now_ms=tx.now_ms)
    key = None if order.request_id is None else f"{queue}/claim/{clean_text(order.request_id)}"
    written = tx.written(key) if key else ()
    if written:
        return _told(tx, jobs, [_claim_of(record, order.queue, jobs) for record in written])
    if opening.paused:
        return Claims(paused=True, now_ms=tx.now_ms)
    if opening.moved_by_time and not tx.queues.move_by_time(jobs) and not partly:
        return None
    claims, deferred = _take(tx, jobs, order, policy, key)
    return _told(tx, jobs, claims, deferred)


def _take(
    tx: Transaction, jobs: QueueJobs, order: ClaimOrder, policy: Policy, key: str | None
) -> tuple[list[Claim], list[str]]:
    now_ms = tx.now_ms
    window = tx.queues.window(jobs, policy, order.excluded_keys, order.limit)
    claims: list[Claim] = []
    deferred = False
    while len(claims) < order.limit:
        selection = select(window, policy, now_ms, order.excluded_keys)
        if selection is None:
            deferred = True
            break
        chosen = selection.candidate
        assert isinstance(chosen, ReadyJob)  # the window gives no others
        if not chosen.is_ready(now_ms):
            _put_back(jobs, chosen.job_id, now_ms)
            window.pass_over(chosen)
            continue
        if _was_ours(jobs, chosen, order):
            window.pass_over(chosen)
            continue
        window.take(selection)
        claims.append(_new_claim(order, chosen, receipt(selection, now_ms), now_ms))
    jobs.flush()
    topic = topics.claims_topic(order.queue)
    tx.append([_record(each, topic) for each in claims], key=key)
    window.save()
    return claims, window.defer() if deferred else []


def _was_ours(jobs: QueueJobs, chosen: ReadyJob, order: ClaimOrder) -> bool:
    """Whether the consumer had the job before, since the time from which that counts."""
    if order.not_again_since_ms is None or not chosen.claim_id:
        return False
    job = jobs.find(chosen.job_id)
    return (
        job is not None
        and job.consumer_id == order.consumer_id
        and job.claimed_at_ms >= order.not_again_since_ms
    )


def _put_back(jobs: QueueJobs, job_id: int, now_ms: int) -> None:
    job = jobs.find(job_id)
    if job is not None:
        jobs.move(job_id, job, now_ms)


def _new_claim(order: ClaimOrder, job: ReadyJob, why: Receipt, now_ms: int) -> Claim:
    return Claim(
        queue=order.queue,
        job_event_id=job.job_id,
        claim_id=str(uuid.uuid4()),
        consumer_id=order.consumer_id,
        claimed_at_ms=now_ms,
        expires_at_ms=now_ms + order.ttl_ms,
        delivery=job.deliveries + 1,
        event_id=job.event_id,
        scheduling=why,
    )


def _record(claim: Claim, topic: str) -> Append:
    return Append(
        topic,
        "job_claimed",
        {
            "job_event_id": claim.job_event_id,
            "claim_id": claim.claim_id,
            "consumer_id": claim.consumer_id,
            "claimed_at_ms": claim.claimed_at_ms,
            "expires_at_ms": claim.expires_at_ms,
            "scheduling": claim.scheduling.to_json(),
        },
    )


def _claim_of(record: Record, queue: str, jobs: QueueJobs) -> Claim:
    """A claim that was made before, read back. Whether it still holds, renewing it tells."""
    told = {**record.payload, "scheduling": Receipt(**record.payload["scheduling"])}
    job = jobs.find(told["job_event_id"]) or Job()
    return Claim(**told, queue=queue, delivery=job.deliveries, event_id=job.event_id)


def _told(
    tx: Transaction, jobs: QueueJobs, claims: list[Claim], deferred: Sequence[str] = ()
) -> Claims:
    ahead = tx.queues.ahead(jobs)
    return Claims.model_construct(
        claims=tuple(claims),
        ready=ahead.ready,
        paused=False,
        next_at_ms=ahead.next_at_ms,
        now_ms=tx.now_ms,
        deferred_keys=tuple(deferred),
    )
