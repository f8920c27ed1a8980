"""The jobs that consumers hold, by the events they are about."""

from __future__ import annotations

from dataclasses import dataclass

from harn_temporal.eventlog.log import Reader
from harn_temporal.naming import job_workflow_id


@dataclass(frozen=True, slots=True)
class JobUnderWay:
    """A claimed job. `binding_key` is its consumer's, and empty until an attempt has begun."""

    queue: str
    job_event_id: int
    claim_id: str
    consumer_id: str
    event_id: str
    trigger_id: str
    workflow_id: str
    binding_key: str


def jobs_under_way(reader: Reader, event_id: str | None = None) -> list[JobUnderWay]:
    """Every claimed job, or those of one event."""
    found = []
    for held in reader.queues.held(event_id):
        for queue in reader.queues.names_of(held.topic):
            workflow_id = job_workflow_id(queue, held.job_event_id, held.claim_id)
            found.append(
                JobUnderWay(
                    queue,
                    held.job_event_id,
                    held.claim_id,
                    held.consumer_id,
                    held.event_id,
                    held.trigger_id,
                    workflow_id,
                    _binding_key(reader, workflow_id),
                )
            )
    return found


def _binding_key(reader: Reader, workflow_id: str) -> str:
    dispatch = reader.dispatches.get(workflow_id)
    if dispatch is None or not dispatch.begun_id:
        return ""
    [begun] = reader.read(dispatch.begun_topic, after=dispatch.begun_id - 1, limit=1)
    return begun.headers.get("binding_key", "")
