"""What workflows and activities say to each other: one typed input and output for each.

A field may be added with a default and none may be removed or change its meaning: running
workflows hold older ones.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from harn_temporal.bindings import Binding, HandlerKind
from harn_temporal.events import TriggerEvent

AttemptStatus = Literal["success", "failed", "denied", "timeout", "waiting", "cancelled"]
DispatchStatus = Literal["succeeded", "failed", "dlq", "skipped", "waiting", "cancelled"]
DispatchPhase = Literal[
    "predicate",
    "gate_wait",
    "attempt",
    "following",
    "retry_wait",
    "store_wait",
    "cancelling",
    "ended",
]
ErrorClass = Literal[
    "provider_5xx",
    "predicate_panic",
    "handler_panic",
    "handler_timeout",
    "auth_failed",
    "budget_exhausted",
    "unknown",
]

INLINE_EVENT_LIMIT = 32 * 1024
"""Bytes of an event's JSON up to which a workflow carries it; a larger one is read by address."""

INLINE_RESULT_LIMIT = 256 * 1024
"""Bytes of a result's JSON up to which a workflow carries it; a larger one is referenced."""

DEFAULT_HEARTBEAT_TIMEOUT_MS = 30_000


class Message(BaseModel):
    model_config = ConfigDict(frozen=True)


class EventAddress(Message):
    """Where in the EventLog the envelope of an event lies."""

    topic: str
    event_id: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.event_id}"

    @classmethod
    def read(cls, text: str) -> EventAddress | None:
        """What `str` gave; None for any other text."""
        topic, _, written = text.rpartition("/")
        if not topic or not (written.isascii() and written.isdecimal()):
            return None
        return cls(topic=topic, event_id=int(written))


class RemoteTask(Message):
    """A task at an A2A agent, with what it takes to ask about it.

    `state` is one of `submitted`, `working`, `input-required` and so on, whichever generation of
    the protocol the agent speaks.
    """

    task_id: str
    state: str
    target_agent: str
    rpc_url: str
    card_url: str
    agent_id: str
    protocol_version: str
    tenant: str | None = None
    """What the agent's interface wants back in every call, where it names one."""


class AttemptOutcome(Message):
    """How an attempt ended, and what follows: a retry after `retry_in_ms`, or `final`.

    With `pending` the attempt has not ended: it goes on as `remote_task`, which the dispatch
    follows, and nothing is written yet about how it ends. Then `retry_in_ms` says how long the
    agent asked not to be asked, and `error` why it could not be asked.
    """

    attempt: int
    status: AttemptStatus
    result: JsonValue = None
    result_address: EventAddress | None = None
    """Where the record with the result lies, when it is too large to be carried here."""
    error: str | None = None
    error_class: ErrorClass | None = None
    retry_in_ms: int | None = None
    final: DispatchStatus | None = None
    remote_task: RemoteTask | None = None
    """The task that an A2A agent made of the attempt, where it named one."""
    pending: bool = False


class JobClaim(Message):
    """The claim under which a job of a worker queue is dispatched.

    No attempt begins once somebody else holds the job.
    """

    queue: str
    job_event_id: int
    claim_id: str


class DispatchRequest(Message):
    """One event for one binding: what DispatchWorkflow is started with."""

    store_id: str
    binding: Binding
    event_id: str
    trace_id: str
    tenant_id: str | None = None
    address: EventAddress
    event: TriggerEvent | None = None
    replay_of_event_id: str | None = None
    replay: int | None = None
    """Which replay of this event and trigger it is, counted from 1; None for the first dispatch."""
    search_attributes: bool = True
    """False where the Temporal service refused to register them."""
    heartbeat_timeout_ms: int = DEFAULT_HEARTBEAT_TIMEOUT_MS
    """A worker that is silent for so long while it runs an attempt is taken for dead."""
    claim: JobClaim | None = None
    """For a job of a worker queue."""
    consumer: str | None = None
    """The workflow of the job's consumer, which is told when the job waits and when it goes on."""
    resume: AttemptOutcome | None = None
    """The attempt to go on from, where the dispatch began in its consumer's history, or in a
    workflow that Temporal has lost."""
    traceparent: str | None = None
    """The span that the dispatch joins, in the form of W3C; None where nobody said."""
    batch: EventAddress | None = None
    """The record that names the members of the batch which it is dispatched for."""


class PredicateRequest(Message):
    dispatch: DispatchRequest
    dispatch_id: str


class PredicateVerdict(Message):
    """`passed` is False when the predicate said no, or failed closed (then `error` says why).

    With `cancelled` it was not asked: a durable request cancelled the dispatch, which has ended.
    """

    passed: bool
    error: str | None = None
    cancelled: bool = False


class AttemptRequest(Message):
    """`dispatch_id` is the workflow's id, or the job's where a consumer runs it inline."""

    dispatch: DispatchRequest
    dispatch_id: str
    attempt: int


class LostAttempt(Message):
    """An attempt whose worker can no longer speak for it; the workflow reports it."""

    dispatch: DispatchRequest
    dispatch_id: str
    attempt: int
    status: AttemptStatus
    error: str
    remote_task: RemoteTask | None = None


class FollowedTask(Message):
    """A task of an A2A agent that an attempt goes on as: what to ask about, or to cancel."""

    dispatch: DispatchRequest
    dispatch_id: str
    attempt: int
    task: RemoteTask


class CancelledDispatch(Message):
    """A dispatch that was cancelled while no attempt ran: before the first, or in a retry wait."""

    dispatch: DispatchRequest
    dispatch_id: str
    attempts: int
    """How many attempts had ended by then, as far as the workflow knows."""


class DispatchEnd(Message):
    """How a dispatch has ended."""

    status: DispatchStatus
    attempts: int
    result: JsonValue = None
    result_address: EventAddress | None = None
    error: str | None = None

    @staticmethod
    def of(last: AttemptOutcome) -> DispatchEnd:
        """The end that its last attempt, which has a `final`, brought."""
        assert last.final is not None
        return DispatchEnd(
            status=last.final,
            attempts=last.attempt,
            result=last.result,
            result_address=last.result_address,
            error=last.error,
        )


class DispatchOutcome(Message):
    """The result of DispatchWorkflow, and what the records of a worker queue carry."""

    trigger_id: str
    binding_key: str
    event_id: str
    attempt_count: int
    status: DispatchStatus
    handler_kind: HandlerKind
    target_uri: str
    replay_of_event_id: str | None = None
    result: JsonValue = None
    result_address: EventAddress | None = None
    error: str | None = None


class DispatchState(Message):
    """The answer to the query `state`: what a dispatch does at this moment.

    `phase` is one of predicate, gate_wait, attempt, following (the task of an A2A agent),
    retry_wait, store_wait, cancelling, ended.
    `attempt` is 0 before the first one. `until` is RFC 3339 and says when a wait ends.
    """

    phase: DispatchPhase
    attempt: int
    max_attempts: int
    until: str | None = None
    last_error: str | None = None
    outcome: DispatchOutcome | None = None


class PumpRequest(Message):
    """What PumpWorkflow is started with. A run ends after `lifetime_ms` and continues as new."""

    store_id: str
    package: str
    control_queue: str
    heartbeat_timeout_ms: int = DEFAULT_HEARTBEAT_TIMEOUT_MS
    lifetime_ms: int = 6 * 3_600_000


class PumpReport(Message):
    """What one run of the pump did: dispatches started, and envelopes it could not read."""

    started: int = 0
    malformed: int = 0
