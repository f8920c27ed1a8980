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


class Message(BaseModel):
    model_config = ConfigDict(frozen=True)


class EventAddress(Message):
    """Where in the EventLog the envelope of an event lies."""

    topic: str
    event_id: int


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
    search_attributes: bool = True
    """False where the Temporal service refused to register them."""


class PredicateVerdict(Message):
    """`passed` is False when the predicate said no, or failed closed (then `error` says why)."""

    passed: bool
    error: str | None = None


class AttemptRequest(Message):
    dispatch: DispatchRequest
    attempt: int


class LostAttempt(Message):
    """An attempt whose worker can no longer speak for it; the workflow reports it."""

    dispatch: DispatchRequest
    attempt: int
    status: AttemptStatus
    error: str


class AttemptOutcome(Message):
    """How an attempt ended, and what follows: a retry after `retry_in_ms`, or `final`."""

    attempt: int
    status: AttemptStatus
    result: JsonValue = None
    error: str | None = None
    error_class: ErrorClass | None = None
    retry_in_ms: int | None = None
    final: DispatchStatus | None = None


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
    error: str | None = None
