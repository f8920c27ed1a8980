"""How jobs end: a response for each, and an ack while the claim is still the consumer's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harn_temporal.eventlog import topics
from harn_temporal.eventlog.log import Transaction
from harn_temporal.eventlog.queue_jobs import Job
from harn_temporal.eventlog.records import Append
from harn_temporal.queue.models import Settled, Settlement
from harn_temporal.queue.names import checked_queue

LOST = "the claim was lost: another consumer has taken the job"


def settle(
    tx: Transaction, queue: str, consumer_id: str, settlements: Iterable[Settlement]
) -> list[Settled]:
    """Append a response for each, and an ack where asked for. Doing it again changes nothing.

    A claim that was taken over gets no ack, and its response says so in `error` and `claim_lost`.
    """
    topic_part = checked_queue(tx, queue)
    jobs = tx.queues.jobs(topic_part)
    settled: list[Settled] = []
    batch: list[Append] = []
    for each in settlements:
        job = (None if jobs is None else jobs.find(each.job_event_id)) or Job()
        if job.acked and job.claim_id == each.claim_id:
            settled.append(_settled(each, acked=True, lost=False))
            continue
        lost = not job.claimed_by(each.claim_id)
        response = _response(queue, consumer_id, each, tx.now_ms, lost=lost)
        if each.ack and not lost:
            batch += [response, _ack(queue, consumer_id, each, tx.now_ms)]
        else:
            tx.append([response], key=f"{topic_part}/response/{each.claim_id}")
        settled.append(_settled(each, acked=each.ack and not lost, lost=lost))
    tx.append(batch)
    return settled


def _settled(settlement: Settlement, *, acked: bool, lost: bool) -> Settled:
    return Settled(
        job_event_id=settlement.job_event_id,
        claim_id=settlement.claim_id,
        acked=acked,
        lost=lost,
    )


def _response(
    queue: str, consumer_id: str, settlement: Settlement, now_ms: int, *, lost: bool
) -> Append:
    outcome = settlement.outcome
    payload: dict[str, Any] = {
        "queue": queue,
        "job_event_id": settlement.job_event_id,
        "consumer_id": consumer_id,
        "handled_at_ms": now_ms,
        "outcome": None if outcome is None else outcome.model_dump(mode="json"),
        "error": settlement.error,
        "claim_id": settlement.claim_id,
    }
    if lost:
        payload["error"] = f"{LOST}; {settlement.error}" if settlement.error else LOST
        payload["claim_lost"] = True
    return Append(topics.responses_topic(queue), "job_response", payload)


def _ack(queue: str, consumer_id: str, settlement: Settlement, now_ms: int) -> Append:
    return Append(
        topics.claims_topic(queue),
        "job_acked",
        {
            "job_event_id": settlement.job_event_id,
            "claim_id": settlement.claim_id,
            "consumer_id": consumer_id,
            "acked_at_ms": now_ms,
        },
    )
