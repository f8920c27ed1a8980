"""Topics as labels: a tenant's topic counts as the plain one, all gates of a kind as one."""

from __future__ import annotations

from functools import lru_cache

from harn_temporal.eventlog import topics

_PLAIN = (
    topics.INBOX_ENVELOPES,
    topics.INBOX_CLAIMS,
    topics.INBOX_LEGACY,
    topics.TRIGGERS_PENDING,
    topics.TRIGGER_OUTBOX,
    topics.TRIGGER_ATTEMPTS,
    topics.TRIGGER_DLQ,
    topics.TRIGGERS_LIFECYCLE,
    topics.TRIGGERS_EVENTS,
    topics.CANCEL_REQUESTS,
    topics.OPERATIONS_AUDIT,
    topics.ORCHESTRATOR_LIFECYCLE,
    topics.ACTION_GRAPH,
    topics.WORKER_QUEUES,
)
OTHER = "other"


@lru_cache(maxsize=1024)
def topic_label(topic: str) -> str:
    """One of a fixed few, whatever tenants and queues there are."""
    for plain in _PLAIN:
        if topics.is_of(topic, plain):
            return plain
    if topic.startswith(topics.WORKER_PREFIX):
        return f"{topics.WORKER_PREFIX}*.{topics.parse_queue_topic(topic)[1]}"
    kind = topics.gate_kind(topic)
    if kind is not None:
        return f"trigger.{kind}.*"
    return "trigger.circuit.*" if topic.startswith(topics.CIRCUIT_PREFIX) else OTHER
