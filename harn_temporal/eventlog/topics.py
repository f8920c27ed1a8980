"""Names of topics. A topic is no identity: what it is about stands in the payload."""

from __future__ import annotations

import hashlib
import re

INBOX_ENVELOPES = "trigger.inbox.envelopes"
INBOX_CLAIMS = "trigger.inbox.claims"
INBOX_LEGACY = "trigger.inbox"
"""Read, never written."""
TRIGGERS_PENDING = "orchestrator.triggers.pending"
TRIGGER_OUTBOX = "trigger.outbox"
TRIGGER_ATTEMPTS = "trigger.attempts"
TRIGGER_DLQ = "trigger.dlq"
TRIGGERS_LIFECYCLE = "triggers.lifecycle"
TRIGGERS_EVENTS = "triggers.events"
CANCEL_REQUESTS = "trigger.cancel.requests"
OPERATIONS_AUDIT = "trigger.operations.audit"
ORCHESTRATOR_LIFECYCLE = "orchestrator.lifecycle"
ACTION_GRAPH = "observability.action_graph"
WORKER_QUEUES = "worker.queues"

TENANT_PREFIX = "tenant."
NAME_LIMIT = 128
"""Bytes of a name that goes into a topic; a longer one ends in a hash over the whole of it."""

_HASH_LENGTH = 16
_TOPIC = re.compile(r"[A-Za-z0-9._-]+")
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9._-]")


def is_topic(name: str) -> bool:
    return _TOPIC.fullmatch(name) is not None


def safe_topic(name: str) -> str:
    """`name` as part of a topic: at least 1 and at most 128 of `A-Z a-z 0-9 . _ -`."""
    safe = _NOT_ALLOWED.sub("_", name) or "_"
    whole = name.encode("utf-8", "surrogatepass")
    if len(whole) <= NAME_LIMIT:
        return safe
    digest = hashlib.sha256(whole).hexdigest()[:_HASH_LENGTH]
    return f"{safe[: NAME_LIMIT - _HASH_LENGTH - 1]}-{digest}"


def tenant_topic(tenant_id: str | None, topic: str) -> str:
    """The tenant's own topic, or the plain one where there is no tenant."""
    return topic if tenant_id is None else f"{TENANT_PREFIX}{safe_topic(tenant_id)}.{topic}"


def is_of(topic: str, plain: str) -> bool:
    """Whether `topic` is `plain` or the same topic of some tenant."""
    return topic == plain or (topic.startswith(TENANT_PREFIX) and topic.endswith(f".{plain}"))
