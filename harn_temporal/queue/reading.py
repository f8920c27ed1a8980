"""What a queue holds, for people and for consumers."""

from __future__ import annotations

from typing import Any

from harn_temporal.errors import StoreError
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.log import Reader
from harn_temporal.eventlog.queue_tables import ListedJob, Pause
from harn_temporal.headers import TRACEPARENT
from harn_temporal.queue.models import JobState, QueuedJob
from harn_temporal.scheduler.policy import Policy

_LOOKED_AT_ONCE = 1000


def load_job(reader: Reader, queue: str, job_event_id: int) -> QueuedJob | None:
    """A job with its event. None where there is none; StoreError where it cannot be read."""
    topic = topics.queue_topic(queue)
    records = reader.read(topic, after=job_event_id - 1, limit=1)
    if not records or records[0].event_id != job_event_id:
        return None
    record = records[0]
    payload = record.payload
    try:
        return QueuedJob(
            queue=payload["queue"],
            job_event_id=job_event_id,
            trigger_id=payload["trigger_id"],
            binding_key=payload["binding_key"],
            binding_version=payload.get("binding_version"),
            event=payload["event"],
            replay_of_event_id=payload.get("replay_of_event_id"),
            priority=payload.get("priority", "normal"),
            enqueued_at_ms=record.occurred_at_ms,
            traceparent=record.headers.get(TRACEPARENT),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"record {job_event_id} of topic {topic} is no job: {error}") from error


def list_jobs(
    reader: Reader, queue: str, state: JobState | None = None, after: int = 0, limit: int = 1000
) -> list[ListedJob]:
    """Up to `limit` jobs after the id `after`, of one state or of all."""
    found: list[ListedJob] = []
    while len(found) < limit:
        page = reader.queues.listed(topics.safe_topic(queue), after, _LOOKED_AT_ONCE)
        found += [job for job in page if state in (None, job.state)]
        if len(page) < _LOOKED_AT_ONCE:
            break
        after = page[-1].job_event_id
    return found[:limit]


def pause_of(reader: Reader, queue: str) -> Pause | None:
    return reader.queues.pause(topics.safe_topic(queue))


def figures(reader: Reader) -> list[dict[str, Any]]:
    """`worker_queues` of `queue ls --json`: every queue that was ever seen, by name."""
    found = []
    for name, queue in sorted(reader.queues.names().items()):
        of = reader.queues.figures(queue)
        pause = reader.queues.pause(queue)
        oldest = of.oldest_ready_at_ms
        found.append(
            {
                "queue": name,
                "ready": of.ready,
                "in_flight": of.in_flight,
                "acked": of.acked,
                "purged": of.purged,
                "responses": of.responses,
                "oldest_unclaimed_age_ms": None if oldest is None else _age(reader, oldest),
                "delayed": of.delayed,
                "worst_deliveries": of.worst_deliveries,
                "paused": pause is not None,
                "paused_by": None if pause is None else pause.paused_by,
            }
        )
    return found


def scheduler_figures(reader: Reader, policy: Policy) -> dict[str, Any]:
    """`scheduler` of `queue ls --json`."""
    return {
        "policy": policy.to_json(),
        "per_queue": [
            _scheduled(reader, policy, name, queue)
            for name, queue in sorted(reader.queues.names().items())
        ],
    }


def _scheduled(reader: Reader, policy: Policy, name: str, queue: str) -> dict[str, Any]:
    rounds = reader.queues.round(queue, policy.fairness_key)
    suspended = 0
    if policy.strategy == "drr" and policy.starvation_age_ms:
        suspended = reader.queues.waiting_since(queue, reader.now_ms - policy.starvation_age_ms)
    return {
        "queue": name,
        "strategy": policy.strategy,
        "fairness_key": policy.fairness_key,
        "rounds_completed": rounds.rounds,
        "starvation_promotions_total": rounds.starvations,
        "starving_jobs": suspended,
        "keys": [
            {
                "fairness_key": key.key,
                "weight": policy.weight(key.key),
                "deficit": key.credit,
                "in_flight": key.in_flight,
                "selected_total": key.selected_total,
                "deferred_total": key.deferred_total,
                "ready_jobs": key.ready,
                "oldest_ready_age_ms": 0
                if key.oldest_ready_at_ms is None
                else _age(reader, key.oldest_ready_at_ms),
            }
            for key in reader.queues.keys(queue, policy.fairness_key)
        ],
    }


def _age(reader: Reader, at_ms: int) -> int:
    return max(0, reader.now_ms - at_ms)
