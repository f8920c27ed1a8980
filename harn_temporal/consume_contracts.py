"""What the workflow of a consumer and its activities say to each other.

As in `contracts`: fields may be added with a default, and none may be removed.
"""

from __future__ import annotations

from typing import Literal

from harn_temporal.bindings import Binding, Priority
from harn_temporal.contracts import DEFAULT_HEARTBEAT_TIMEOUT_MS, DispatchOutcome, Message
from harn_temporal.events import TriggerEvent

ConsumeMode = Literal["drain", "serve"]

PARKED_PER_SLOT = 4
"""Jobs that may be parked for each slot; then keys that have parked jobs are not claimed."""

EVENTS_AT_ONCE = 256 * 1024
"""Bytes of events that one selection may carry."""

HISTORY_LIMIT = 8_000
"""Events after which a consumer continues as new, also where the service would not suggest it."""


class JobTicket(Message):
    """A claimed job and what it takes to dispatch it.

    Its event only where it is small, and all those of an answer are: else it stays in the log.
    """

    job_event_id: int
    claim_id: str
    delivery: int
    topic: str
    """Of the job's record, which holds the event."""
    workflow_id: str
    trigger_id: str
    event_id: str
    trace_id: str
    tenant_id: str | None = None
    replay_of_event_id: str | None = None
    priority: Priority = "normal"
    fairness_key: str = ""
    traceparent: str | None = None
    event: TriggerEvent | None = None


class JobReport(Message):
    """How a claimed job ended for its consumer.

    `error` is for jobs that ended without an outcome. With `release` the claim is given back, for
    that reason; with `unless_begun` only where no attempt of the job has begun. `gone`: the
    workflow of the job was ended from outside, and wrote nothing; then `trigger_id` is its.
    """

    job_event_id: int
    claim_id: str
    delivery: int = 1
    workflow_id: str = ""
    outcome: DispatchOutcome | None = None
    error: str | None = None
    release: str | None = None
    unless_begun: bool = False
    gone: bool = False
    trigger_id: str = ""


class CarriedJob(Message):
    """A job whose child workflow outlives a run of its consumer."""

    ticket: JobTicket
    parked: bool = False
    lost: bool = False


class ConsumeCounts(Message):
    """`handled` counts responses; `lost` are jobs that others took over, `released` given back."""

    claimed: int = 0
    handled: int = 0
    acked: int = 0
    lost: int = 0
    released: int = 0


class ConsumeRequest(Message):
    """What ConsumeWorkflow is started with.

    `claims_after` and `responses_after` are the heads of the queue's topics at the start, from
    which on the consumer's own records are to be found. `carried` and what follows it is a run's
    own, for the run after it.
    """

    store_id: str
    package: str
    queue: str
    consumer_id: str
    mode: ConsumeMode
    consume_queue: str
    """The task queue of selection and settlement."""
    ttl_ms: int
    max_concurrent: int
    limit: int | None = None
    """The most jobs to claim in all."""
    max_deliveries: int = 0
    """A job that was delivered so often is acked with its last response; 0 is no limit."""
    inline: bool = False
    search_attributes: bool = True
    heartbeat_timeout_ms: int = DEFAULT_HEARTBEAT_TIMEOUT_MS
    history_limit: int = HISTORY_LIMIT
    claims_after: int = 0
    responses_after: int = 0
    since_ms: int | None = None
    """On the store's clock, when a drain began: what it claimed since it does not claim again."""
    carried: tuple[CarriedJob, ...] = ()
    reports: tuple[JobReport, ...] = ()
    counts: ConsumeCounts = ConsumeCounts()
    stopping: str | None = None


class Selection(Message):
    """Settle `reports`, then claim up to `limit` jobs; with one `request_id` it is done once."""

    queue: str
    consumer_id: str
    mode: ConsumeMode
    request_id: str
    ttl_ms: int
    max_deliveries: int
    limit: int
    excluded_keys: tuple[str, ...] = ()
    since_ms: int | None = None
    reports: tuple[JobReport, ...] = ()


class Selected(Message):
    """`bindings` has the binding of each ticket, once. `handled` counts appended responses.

    `released` are claim ids that were given back. `ready`: ready jobs are left, be it of keys
    that are not eligible. `abandoned`: the process that a serving consumer belongs to is gone.
    """

    tickets: tuple[JobTicket, ...] = ()
    bindings: tuple[Binding, ...] = ()
    claimed: int = 0
    handled: int = 0
    acked: int = 0
    lost: tuple[str, ...] = ()
    released: tuple[str, ...] = ()
    ready: bool = False
    paused: bool = False
    abandoned: bool = False
    next_at_ms: int | None = None
    now_ms: int = 0
    jobs_head: int = 0
    claims_head: int = 0


class ClaimToKeep(Message):
    job_event_id: int
    claim_id: str


class Renewal(Message):
    queue: str
    consumer_id: str
    ttl_ms: int
    claims: tuple[ClaimToKeep, ...]


class Renewed(Message):
    """`lost` are claim ids of jobs that somebody else has taken."""

    lost: tuple[str, ...] = ()


class QueueWatch(Message):
    """Wait until there may be something to claim.

    `blocked` says that ready jobs were left which the consumer could not claim: then it waits for
    a change of the queue, whose heads were these.
    """

    queue: str
    consumer_id: str
    blocked: bool
    paused: bool
    jobs_head: int
    claims_head: int
    next_at_ms: int | None = None


class QueueNews(Message):
    """What a watch saw; nothing that the next selection would not see."""

    changed: bool = False


class ChildrenToCheck(Message):
    workflow_ids: tuple[str, ...]


class EndedChild(Message):
    """A child that has closed; with an `error` where it has no outcome."""

    workflow_id: str
    outcome: DispatchOutcome | None = None
    error: str | None = None


class EndedChildren(Message):
    ended: tuple[EndedChild, ...] = ()


class JobMoved(Message):
    """A child's word to its consumer that its job waits, or goes on."""

    claim_id: str


class JobEnded(Message):
    claim_id: str
    outcome: DispatchOutcome


class ConsumeState(Message):
    """The answer to the query `state`."""

    mode: ConsumeMode
    running: int
    parked: int
    counts: ConsumeCounts
    stopping: str | None
    claims_after: int
    responses_after: int


class ConsumeResult(Message):
    """`ended` says why: `empty`, `limit`, `paused`, `blocked`, or the reason it was stopped for.

    `blocked` leaves ready jobs, behind parked ones or caps.
    """

    counts: ConsumeCounts
    ended: str
    claims_after: int
    responses_after: int
