"""A dispatch to `worker://queue`: its event becomes a job, and its result the receipt."""

from __future__ import annotations

from harn_temporal.bindings import Priority
from harn_temporal.contracts import DispatchRequest
from harn_temporal.eventlog.log import Transaction
from harn_temporal.events import TriggerEvent
from harn_temporal.queue.enqueuing import enqueue
from harn_temporal.queue.models import EnqueueReceipt, NewJob
from harn_temporal.scheduler.candidates import PRIORITIES

SCHEME = "worker://"
PRIORITY_HEADER = "priority"
"""An event that carries it as a header overrides the priority of its binding."""


def queue_of(uri: str) -> str:
    return uri.removeprefix(SCHEME)


def enqueue_job(tx: Transaction, request: DispatchRequest) -> EnqueueReceipt:
    """Append the job of a request that carries its event.

    Call it in the transaction that ends the attempt: a job without its dispatch's outcome would
    be appended again. Raises UsageError for the queue's name.
    """
    event = request.event
    if event is None:
        raise ValueError(f"the request for event {request.event_id} does not carry the event")
    binding = request.binding
    job = NewJob.model_construct(
        queue=queue_of(binding.handler.uri),
        trigger_id=binding.trigger_id,
        binding_key=binding.binding_key,
        binding_version=binding.version or None,
        event=event.to_json(),
        replay_of_event_id=request.replay_of_event_id,
        priority=priority_of(event, binding.priority),
        available_at_ms=None,
        traceparent=request.traceparent,
    )
    return enqueue(tx, [job])[0]


def priority_of(event: TriggerEvent, default: Priority) -> Priority:
    """What the event's header `priority` says, where it is a priority; else `default`."""
    found = event.headers.get(PRIORITY_HEADER, "").strip().lower()
    return next((priority for priority in PRIORITIES if priority == found), default)
