"""What callers of a worker queue give and get; plain data that workflows can carry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, JsonValue

from harn_temporal.bindings import Priority
from harn_temporal.contracts import DispatchOutcome, Message
from harn_temporal.scheduler import Receipt

DEFAULT_TTL_MS = 300_000
CLAIMS_AT_ONCE = 256
"""The most jobs that one transaction claims: well under 100 ms of work."""


class NewJob(Message):
    """A job to be appended. `event` is a TriggerEvent's JSON.

    `available_at_ms` is the time before which nobody claims it.
    """

    queue: str
    trigger_id: str
    binding_key: str
    binding_version: int | None = None
    event: dict[str, Any]
    replay_of_event_id: str | None = None
    priority: Priority = "normal"
    available_at_ms: int | None = None
    traceparent: str | None = None
    """The span that enqueued it, in the form of W3C."""


class EnqueueReceipt(Message):
    """The result of a dispatch to `worker://…`."""

    queue: str
    job_event_id: int
    response_topic: str


class ClaimRef(Message):
    job_event_id: int
    claim_id: str


class ClaimOrder(Message):
    """`excluded_keys` are fairness keys of which the consumer takes no more for the moment.

    With a `request_id` that was used before, the claims made then are given again. Jobs that the
    consumer itself claimed at `not_again_since_ms` or later, and that nobody else took or gave
    back since, are passed over.
    """

    queue: str
    consumer_id: str
    limit: int = Field(default=1, ge=0, le=CLAIMS_AT_ONCE)
    ttl_ms: int = Field(default=DEFAULT_TTL_MS, gt=0)
    excluded_keys: tuple[str, ...] = ()
    request_id: str | None = None
    not_again_since_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """`delivery` counts the claims that took this job, this one included."""

    queue: str
    job_event_id: int
    claim_id: str
    consumer_id: str
    claimed_at_ms: int
    expires_at_ms: int
    delivery: int
    event_id: str
    scheduling: Receipt

    @property
    def ref(self) -> ClaimRef:
        return ClaimRef(job_event_id=self.job_event_id, claim_id=self.claim_id)


class Claims(Message):
    """`ready` says that ready jobs are left, be it of keys that are not eligible.

    `next_at_ms` is when time makes another job ready, as far as is known now. `deferred_keys` had
    ready jobs, and were not eligible.
    """

    claims: tuple[Claim, ...] = ()
    ready: bool = False
    paused: bool = False
    next_at_ms: int | None = None
    now_ms: int = 0
    deferred_keys: tuple[str, ...] = ()


class Kept(Message):
    """What became of claims that were renewed or released; `lost` are no longer the caller's."""

    held: tuple[ClaimRef, ...] = ()
    lost: tuple[ClaimRef, ...] = ()
    expires_at_ms: int | None = None


class Settlement(Message):
    """How a claimed job was handled. With `ack` it leaves the queue.

    `outcome` is None where there was none to tell, and `error` says why.
    """

    job_event_id: int
    claim_id: str
    outcome: DispatchOutcome | None = None
    error: str | None = None
    ack: bool


class Settled(Message):
    """`lost`: somebody else has taken the job; a response that says so was appended, no ack."""

    job_event_id: int
    claim_id: str
    acked: bool
    lost: bool


JobState = Literal["ready", "delayed", "claimed", "acked", "purged"]


class QueuedJob(Message):
    """A job as it was appended."""

    queue: str
    job_event_id: int
    trigger_id: str
    binding_key: str
    binding_version: int | None
    event: dict[str, JsonValue]
    replay_of_event_id: str | None
    priority: Priority
    enqueued_at_ms: int
    traceparent: str | None = None
