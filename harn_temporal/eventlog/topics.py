"""Names of topics. A topic is no identity: what it is about stands in the payload."""

from __future__ import annotations

import hashlib
import re
from typing import Literal

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
WORKER_PREFIX = "worker."
CIRCUIT_PREFIX = "trigger.circuit."
GATE_KINDS = ("batch", "debounce", "rate_limit", "throttle", "singleton", "concurrency")
_GATE_PREFIXES = tuple(f"trigger.{kind}." for kind in GATE_KINDS)

TENANT_PREFIX = "tenant."
NAME_LIMIT = 128
"""Bytes of a name that goes into a topic; a longer one ends in a hash over the whole of it."""

_CLAIMS = ".claims"
_RESPONSES = ".responses"
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


def gate_topic(kind: str, gate: str) -> str:
    """Where the records of a gate lie, perhaps together with those of others."""
    return f"trigger.{kind}.{safe_topic(gate)}"


def gate_kind(topic: str) -> str | None:
    """The kind of the gates whose records lie in a topic; None for other topics."""
    return topic.split(".", 2)[1] if topic.startswith(_GATE_PREFIXES) else None


def circuit_topic(destination: str) -> str:
    return f"{CIRCUIT_PREFIX}{safe_topic(destination)}"


def queue_topic(queue: str) -> str:
    """Where the jobs of a queue lie."""
    return f"{WORKER_PREFIX}{safe_topic(queue)}"


def claims_topic(queue: str) -> str:
    return f"{queue_topic(queue)}{_CLAIMS}"


def responses_topic(queue: str) -> str:
    return f"{queue_topic(queue)}{_RESPONSES}"


def parse_queue_topic(topic: str) -> tuple[str, Literal["jobs", "claims", "responses"]]:
    """Of a topic that begins with `worker.`: the queue's part of it, and what lies there."""
    queue = topic.removeprefix(WORKER_PREFIX)
    if queue.endswith(_CLAIMS):
        return queue.removesuffix(_CLAIMS), "claims"
    if queue.endswith(_RESPONSES):
        return queue.removesuffix(_RESPONSES), "responses"
    return queue, "jobs"


def is_reserved_queue(queue: str) -> bool:
    """Whether the topic of a queue's jobs would be one that holds something else."""
    safe = safe_topic(queue)
    return queue_topic(queue) == WORKER_QUEUES or safe.endswith((_CLAIMS, _RESPONSES))
