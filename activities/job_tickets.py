"""What a consumer is told of a job it has claimed: all that a dispatch of it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harn_temporal.bindings import Binding
from harn_temporal.canonical import encode
from harn_temporal.consume_contracts import EVENTS_AT_ONCE, JobTicket
from harn_temporal.contracts import INLINE_EVENT_LIMIT
from harn_temporal.errors import EventError, StoreError
from harn_temporal.eventlog.log import Reader
from harn_temporal.eventlog.topics import queue_topic
from harn_temporal.events import TriggerEvent
from harn_temporal.naming import job_workflow_id
from harn_temporal.queue.models import Claim, QueuedJob
from harn_temporal.queue.reading import load_job


@dataclass(frozen=True)
class LoadedJob:
    job: QueuedJob
    event: TriggerEvent


def load(reader: Reader, claim: Claim) -> LoadedJob | str:
    """The job, or why it cannot be read."""
    try:
        job = load_job(reader, claim.queue, claim.job_event_id)
        if job is None:
            return f"the job {claim.job_event_id} is not in the log"
        return LoadedJob(job, TriggerEvent.from_json(job.event))
    except (StoreError, EventError) as error:
        return str(error)


def problem_of(job: QueuedJob, bindings: Mapping[str, Binding], queue: str) -> str | None:
    """Why no binding of the consumer takes the job."""
    binding = bindings.get(job.trigger_id)
    if binding is None:
        known = ", ".join(sorted(bindings)) or "none"
        return (
            f"the consumer's manifest has no trigger {job.trigger_id!r}, which the job is for "
            f"(it has {known}); add a trigger with that id and a handler of its own"
        )
    if binding.handler.kind == "worker":
        return (
            f"the trigger {job.trigger_id!r} of the consumer's manifest is itself handled by "
            f"{binding.handler.uri}; a consumer of queue {queue!r} needs a handler that is not "
            "worker://"
        )
    return None


def ticket(claim: Claim, loaded: LoadedJob) -> JobTicket:
    job, event = loaded.job, loaded.event
    return JobTicket(
        job_event_id=claim.job_event_id,
        claim_id=claim.claim_id,
        delivery=claim.delivery,
        topic=queue_topic(claim.queue),
        workflow_id=job_workflow_id(claim.queue, claim.job_event_id, claim.claim_id),
        trigger_id=job.trigger_id,
        event_id=claim.event_id,
        trace_id=event.trace_id,
        tenant_id=event.tenant_id,
        event=event,
        replay_of_event_id=job.replay_of_event_id,
        priority=job.priority,
        fairness_key=claim.scheduling.fairness_key,
        traceparent=job.traceparent,
    )


def within_limit(tickets: list[JobTicket]) -> list[JobTicket]:
    """Without events that are large, and without any where all together are."""
    sizes = [0 if each.event is None else len(encode(each.event.to_json())) for each in tickets]
    together = sum(size for size in sizes if size <= INLINE_EVENT_LIMIT)
    limit = INLINE_EVENT_LIMIT if together <= EVENTS_AT_ONCE else 0
    return [
        each if size <= limit else each.model_copy(update={"event": None})
        for each, size in zip(tickets, sizes, strict=True)
    ]
