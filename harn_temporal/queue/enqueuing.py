"""Appending jobs."""

from __future__ import annotations

from collections.abc import Sequence

from harn_temporal.errors import EventError, UsageError
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.log import Transaction
from harn_temporal.eventlog.records import Append, Record
from harn_temporal.headers import AVAILABLE_AT_MS, TRACEPARENT
from harn_temporal.queue.models import EnqueueReceipt, NewJob
from harn_temporal.queue.names import checked_queue
from harn_temporal.trace_ids import parse_traceparent


def enqueue(
    tx: Transaction, jobs: Sequence[NewJob], key: str | None = None
) -> list[EnqueueReceipt]:
    """Append jobs in order; with a `key` that was used before, give the receipts of then.

    Raises UsageError for a queue's name, EventError for an event that is none.
    """
    batch: list[Append] = []
    queues: dict[str, str] = {}
    for job in jobs:
        if job.queue not in queues:
            queues[job.queue] = checked_queue(tx, job.queue)
            _refuse_collision(job.queue, queues)
            if job.queue not in tx.queues.names_of(queues[job.queue]):
                batch.append(Append(topics.WORKER_QUEUES, "queue_seen", {"queue": job.queue}))
        batch.append(_record(job))
    appended = tx.append(batch, key=key)
    return [_receipt(record) for record in appended.records if record.kind == "trigger_dispatch"]


def _record(job: NewJob) -> Append:
    event_id = job.event.get("id")
    if not isinstance(event_id, str):
        raise EventError("the event of a job has no text in `id`")
    headers = {
        "queue": job.queue,
        "trigger_id": job.trigger_id,
        "binding_key": job.binding_key,
        "event_id": event_id,
        "priority": job.priority,
    }
    if job.available_at_ms is not None:
        headers[AVAILABLE_AT_MS] = str(max(0, job.available_at_ms))
    if job.traceparent is not None and parse_traceparent(job.traceparent):
        headers[TRACEPARENT] = job.traceparent
    return Append(
        topics.queue_topic(job.queue),
        "trigger_dispatch",
        {
            "queue": job.queue,
            "trigger_id": job.trigger_id,
            "binding_key": job.binding_key,
            "binding_version": job.binding_version,
            "event": job.event,
            "replay_of_event_id": job.replay_of_event_id,
            "priority": job.priority,
        },
        headers,
    )


def _receipt(record: Record) -> EnqueueReceipt:
    queue = record.headers["queue"]
    return EnqueueReceipt(
        queue=queue,
        job_event_id=record.event_id,
        response_topic=topics.responses_topic(queue),
    )


def _refuse_collision(name: str, queues: dict[str, str]) -> None:
    """Among the queues of one batch, of which none need be in the log yet."""
    other = next((o for o, t in queues.items() if o != name and t == queues[name]), None)
    if other is not None:
        raise UsageError(f"the queues {name!r} and {other!r} would share a topic")
