"""Keeping claims, or giving them back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from harn_temporal.contracts import JobClaim
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.log import Reader, Transaction
from harn_temporal.eventlog.records import Append
from harn_temporal.queue.models import ClaimRef, Kept
from harn_temporal.queue.names import checked_queue


def renew(
    tx: Transaction, queue: str, consumer_id: str, claims: Iterable[ClaimRef], ttl_ms: int
) -> Kept:
    """Hold claims for `ttl_ms` from now, also those that expired and that nobody took since."""
    expires_at_ms = tx.now_ms + ttl_ms
    held, lost = _sorted_out(tx, queue, claims)
    fields = {
        "consumer_id": consumer_id,
        "renewed_at_ms": tx.now_ms,
        "expires_at_ms": expires_at_ms,
    }
    _append(tx, queue, "claim_renewed", held, fields)
    return Kept(held=tuple(held), lost=tuple(lost), expires_at_ms=expires_at_ms)


def holds(reader: Reader, claim: JobClaim) -> bool:
    """Whether a claim is still its owner's, expired or not: nobody else has taken the job."""
    jobs = reader.queues.jobs(topics.safe_topic(claim.queue))
    job = None if jobs is None else jobs.find(claim.job_event_id)
    return job is not None and job.claimed_by(claim.claim_id)


def release(
    tx: Transaction, queue: str, consumer_id: str, claims: Iterable[ClaimRef], reason: str | None
) -> Kept:
    """Give claims back: their jobs are ready at once."""
    held, lost = _sorted_out(tx, queue, claims)
    fields: dict[str, Any] = {"consumer_id": consumer_id, "released_at_ms": tx.now_ms}
    if reason is not None:
        fields["reason"] = reason
    _append(tx, queue, "job_released", held, fields)
    return Kept(held=tuple(held), lost=tuple(lost))


def _sorted_out(
    tx: Transaction, queue: str, claims: Iterable[ClaimRef]
) -> tuple[list[ClaimRef], list[ClaimRef]]:
    jobs = tx.queues.jobs(checked_queue(tx, queue))
    held: list[ClaimRef] = []
    lost: list[ClaimRef] = []
    for claim in dict.fromkeys(claims):
        job = None if jobs is None else jobs.find(claim.job_event_id)
        holds = job is not None and job.claimed_by(claim.claim_id)
        (held if holds else lost).append(claim)
    return held, lost


def _append(
    tx: Transaction,
    queue: str,
    kind: str,
    claims: Sequence[ClaimRef],
    fields: dict[str, Any],
) -> None:
    topic = topics.claims_topic(queue)
    records = [
        Append(
            topic,
            kind,
            {
                "job_event_id": claim.job_event_id,
                "claim_id": claim.claim_id,
                **fields,
            },
        )
        for claim in claims
    ]
    tx.append(records)
