"""What `queue ls` and `queue jobs` show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harn_temporal.clock import rfc3339
from harn_temporal.errors import NotFoundError
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.dispatches import StoredDispatch
from harn_temporal.eventlog.log import Reader
from harn_temporal.eventlog.queue_tables import ListedJob
from harn_temporal.naming import job_workflow_id
from harn_temporal.queue.reading import figures, scheduler_figures
from harn_temporal.recovery.stranded import stranded_envelopes
from harn_temporal.scheduler.candidates import PRIORITIES, PROMOTED_AFTER_MS
from harn_temporal.scheduler.policy import Policy

Json = dict[str, Any]

SETTLED = frozenset({"acked", "purged"})

MOST = 1000
"""Dispatches that are listed one by one; the figures count all."""

_STATES = {"claimed": "in-flight"}
STATES = ("ready", "delayed", "in-flight", "parked", "acked", "purged")


def queue_overview(reader: Reader, policy: Policy) -> Json:
    """`queue ls --json`, true in every process: all of it comes from the store."""
    return {
        "dispatcher": _dispatcher(reader),
        "worker_queues": figures(reader),
        "scheduler": scheduler_figures(reader, policy),
    }


def queue_summary(reader: Reader, queue: str) -> Json:
    """One entry of `worker_queues`; zeros for a queue that was never seen."""
    found = next((each for each in figures(reader) if each["queue"] == queue), None)
    return found or {
        "queue": queue,
        "ready": 0,
        "in_flight": 0,
        "acked": 0,
        "purged": 0,
        "responses": 0,
        "oldest_unclaimed_age_ms": None,
        "delayed": 0,
        "worst_deliveries": 0,
        "paused": False,
        "paused_by": None,
    }


def known_queue(reader: Reader, queue: str) -> str:
    """The queue's part of a topic. Raises NotFoundError that names the queues there are."""
    names = reader.queues.names()
    if queue not in names:
        known = ", ".join(sorted(names)[:10]) or "none"
        raise NotFoundError(f"no queue {queue!r} was ever seen in this store; it has {known}")
    return names[queue]


def _dispatcher(reader: Reader) -> Json:
    under_way = reader.dispatches.figures()
    inbox = reader.inbox.figures()
    in_flight, retries = _under_way(reader)
    return {
        "dispatcher_in_flight": under_way.in_flight,
        "dispatcher_retry_queue_depth": under_way.retrying,
        "inferred_in_flight": under_way.in_flight,
        "inferred_pending_retries": under_way.retrying,
        "inbox_claims_written": reader.head(topics.INBOX_CLAIMS),
        "inbox_envelopes_written": sum(
            head.last_id
            for head in reader.topics()
            if topics.is_of(head.topic, topics.INBOX_ENVELOPES)
        ),
        # Of these no record tells, and a process that has just begun has counted none.
        "inbox_duplicates_rejected": 0,
        "inbox_fast_path_hits": 0,
        "inbox_durable_hits": 0,
        "inbox_expired_entries": inbox.expired,
        "inbox_active_entries": inbox.active,
        "in_flight_dispatches": in_flight,
        "pending_retries": retries,
        "stranded_envelopes": _stranded(reader),
    }


def _under_way(reader: Reader) -> tuple[list[str], list[str]]:
    in_flight: list[str] = []
    retries: list[str] = []
    for dispatch in reader.dispatches.all_under_way(limit=MOST):
        if dispatch.started_attempt > dispatch.ended_attempt:
            in_flight.append(_key(reader, dispatch, dispatch.started_attempt))
        elif dispatch.ended_attempt:
            retries.append(_key(reader, dispatch, dispatch.ended_attempt + 1))
    return sorted(in_flight), sorted(retries)


def _key(reader: Reader, dispatch: StoredDispatch, attempt: int) -> str:
    found = reader.read(dispatch.begun_topic, after=dispatch.begun_id - 1, limit=1)
    headers = found[0].headers if found else {}
    return f"{headers.get('binding_key', '?')}:{headers.get('event_id', '?')}:{attempt}"


def _stranded(reader: Reader) -> list[Json]:
    packages = sorted({each.package for each in reader.bindings.states() if each.package})
    return [
        envelope.to_json(reader.now_ms)
        for package in packages
        for envelope in stranded_envelopes(reader, package, limit=MOST)
    ]


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as `queue jobs` shows it."""

    job: ListedJob
    state: str
    fairness_key: str
    promotion_deadline_at_ms: int | None

    def to_json(self, now_ms: int) -> Json:
        job = self.job
        claim = None
        if job.claim_id is not None:
            claim = {
                "claim_id": job.claim_id,
                "consumer_id": job.consumer_id,
                "claimed_at": _time(job.claimed_at_ms),
                "expires_at": _time(job.expires_at_ms),
            }
        return {
            "job_event_id": job.job_event_id,
            "state": self.state,
            "trigger_id": job.trigger_id,
            "binding_key": job.binding_key,
            "event_id": job.event_id,
            "tenant_id": job.tenant_id,
            "priority": job.priority,
            "enqueued_at": rfc3339(job.enqueued_at_ms),
            "available_at": rfc3339(job.available_at_ms),
            "age_ms": max(0, now_ms - job.enqueued_at_ms),
            "deliveries": job.deliveries,
            "fairness_key": self.fairness_key,
            "promotion_deadline_at": _time(self.promotion_deadline_at_ms),
            "claim": claim,
        }


def queue_jobs(
    reader: Reader, queue: str, policy: Policy, *, state: str | None, after: int, limit: int
) -> list[JobView]:
    """Up to `limit` jobs after the id `after`, of one state of STATES or of all."""
    topic_part = known_queue(reader, queue)
    found: list[JobView] = []
    while len(found) < limit:
        page = reader.queues.listed(topic_part, after, MOST)
        for job in page:
            view = _job_view(reader, queue, job, policy)
            if state in (None, view.state):
                found.append(view)
        if len(page) < MOST:
            break
        after = page[-1].job_event_id
    return found[:limit]


def _job_view(reader: Reader, queue: str, job: ListedJob, policy: Policy) -> JobView:
    after_ms = PROMOTED_AFTER_MS[PRIORITIES.index(job.priority)]
    if job.state in SETTLED:
        after_ms = None
    state = _STATES.get(job.state, job.state)
    if state == "in-flight" and job.claim_id is not None and _is_parked(reader, queue, job):
        state = "parked"
    return JobView(
        job,
        state,
        policy.key_of(job.tenant_id, job.trigger_id, job.binding_key),
        None if after_ms is None else job.available_at_ms + after_ms,
    )


def _is_parked(reader: Reader, queue: str, job: ListedJob) -> bool:
    """Whether the dispatch under the job's claim waits: at a gate, for a task, or for a retry."""
    workflow_id = job_workflow_id(queue, job.job_event_id, job.claim_id or "")
    dispatch = reader.dispatches.get(workflow_id)
    if dispatch is not None and (dispatch.waits_between_attempts or dispatch.follows_a_task):
        return True
    return bool(reader.gates.waiters_of(workflow_id))


def _time(at_ms: int | None) -> str | None:
    return None if at_ms is None else rfc3339(at_ms)
