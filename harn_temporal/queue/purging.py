"""Removing jobs that nobody has claimed."""

from __future__ import annotations

from dataclasses import dataclass

from harn_temporal.eventlog import topics
from harn_temporal.eventlog.log import Transaction
from harn_temporal.eventlog.records import Append
from harn_temporal.queue.names import checked_queue

PURGED_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Purged:
    """`last` is the id of the last job that was purged, None where none was left."""

    count: int
    last: int | None


def purge_some(
    tx: Transaction, queue: str, purged_by: str, reason: str | None, after: int = 0
) -> Purged:
    """Purge some of the ready and delayed jobs after the id `after`; claimed ones stay."""
    found = tx.queues.unclaimed(checked_queue(tx, queue), after, PURGED_AT_ONCE)
    fields = {"purged_by": purged_by, "purged_at_ms": tx.now_ms}
    if reason is not None:
        fields["reason"] = reason
    topic = topics.claims_topic(queue)
    tx.append([Append(topic, "job_purged", {"job_event_id": job, **fields}) for job in found])
    return Purged(len(found), found[-1] if found else None)
