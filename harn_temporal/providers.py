"""The typed part of an event: what each provider's payload is known to hold, beside `raw`.

Harn reads these objects into strict types, so a key it requires is always there (null where the
payload has none) and a key it types as a string is a string or null. Code that must rely on a
payload reads `event` and `raw`: what is typed may be lost in a copy that went through Harn.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

STREAM_PROVIDERS = frozenset({"email", "kafka", "nats", "postgres-cdc", "pulsar", "websocket"})

RFC3339 = re.compile(
    r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
    r"[Tt](?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d{1,9})?"
    r"(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)"
)

_DELIVERY_HEADERS = {
    "github": "x-github-delivery",
    "linear": "linear-delivery",
}
_ANY_DELIVERY_HEADERS = ("idempotency-key", "webhook-id")

_GITHUB_OBJECTS = {
    "check_run": ("check_run",),
    "check_suite": ("check_suite",),
    "deployment_status": ("deployment_status", "deployment"),
    "issue_comment": ("issue", "comment"),
    "issues": ("issue",),
    "merge_group": ("merge_group",),
    "pull_request": ("pull_request",),
    "pull_request_review": ("pull_request", "review"),
    "pull_request_review_comment": ("pull_request", "comment"),
    "release": ("release",),
    "workflow_job": ("workflow_job",),
    "workflow_run": ("workflow_run",),
}

_LINEAR_EVENTS = {
    "issuecomment": "comment",
    "issue_comment": "comment",
    "issuelabel": "issue_label",
    "projectupdate": "project",
    "project_update": "project",
    "customerrequest": "customer_request",
}
_LINEAR_OBJECTS = {
    "comment": "comment",
    "customer": "customer",
    "customer_request": "customer_request",
    "cycle": "cycle",
    "issue": "issue",
    "issue_label": "label",
    "project": "project",
}

_SLACK_TEXTS = (
    "channel",
    "channel_type",
    "item_user",
    "reaction",
    "subtype",
    "tab",
    "text",
    "thread_ts",
    "ts",
    "user",
)
_SLACK_OBJECTS = ("assistant_thread", "item", "view")

_STREAM_FIELDS = {
    "source": ("source", "connector", "origin"),
    "stream": ("stream", "topic", "subject", "channel", "mailbox", "slot"),
    "partition": ("partition", "shard", "consumer"),
    "offset": ("offset", "sequence", "lsn", "message_id"),
    "key": ("key", "message_key", "id", "event_id"),
    "timestamp": ("timestamp", "occurred_at", "received_at", "ts"),
}

_Fields = dict[str, JsonValue]


@dataclass(frozen=True)
class _Delivery:
    provider: str
    kind: str
    headers: Mapping[str, str]
    raw: JsonValue
    received_at: str

    @property
    def fields(self) -> Mapping[str, JsonValue]:
        return _object(self.raw)


def typed_payload(
    provider: str, kind: str, headers: Mapping[str, str], raw: JsonValue, received_at: str
) -> dict[str, JsonValue]:
    """The `provider_payload` of an event: its tag, the typed object, and `raw`, untouched.

    `headers` have lower-case names and are redacted; `received_at` is RFC 3339, and the tick of a
    cron event that names none.
    """
    delivery = _Delivery(provider, kind, headers, raw, received_at)
    return {"provider": provider, **_typed(delivery), "raw": raw}


def delivery_id(provider: str, headers: Mapping[str, str]) -> str | None:
    """What the sender calls this delivery, the same when it is sent again; None if it says none."""
    names = (_DELIVERY_HEADERS.get(provider), *_ANY_DELIVERY_HEADERS)
    return next((headers[name] for name in names if name and headers.get(name)), None)


def _typed(delivery: _Delivery) -> _Fields:  # noqa: PLR0911 - one return for each provider
    if delivery.provider in STREAM_PROVIDERS:
        return _stream(delivery)
    match delivery.provider:
        case "github":
            return _github(delivery)
        case "slack":
            return _slack(delivery)
        case "linear":
            return _linear(delivery)
        case "notion":
            return _notion(delivery)
        case "cron":
            return _cron(delivery)
        case "webhook":
            return _webhook(delivery)
        case "a2a-push":
            return _a2a_push(delivery)
        case other:
            return {"schema_name": other}


def _github(delivery: _Delivery) -> _Fields:
    payload = delivery.fields
    event = delivery.kind.partition(".")[0]
    typed: _Fields = {
        "event": event,
        "action": _text(payload.get("action")),
        "delivery_id": delivery.headers.get("x-github-delivery"),
        "installation_id": _integer(_object(payload.get("installation")).get("id")),
    }
    typed |= {name: payload.get(name) for name in _GITHUB_OBJECTS.get(event, ())}
    if event == "push":
        commits = payload.get("commits")
        typed["commits"] = commits if isinstance(commits, list) else []
        typed["distinct_size"] = _integer(payload.get("distinct_size"))
    return typed


def _slack(delivery: _Delivery) -> _Fields:
    payload = delivery.fields
    event = _object(payload.get("event"))
    item = _object(event.get("item"))
    typed: _Fields = {
        "event": delivery.kind,
        "event_id": _text(payload.get("event_id")),
        "api_app_id": _text(payload.get("api_app_id")),
        "team_id": _text(payload.get("team_id")),
        "channel_id": _text(event.get("channel")) or _text(item.get("channel")),
        "user_id": _text(event.get("user")),
        "event_ts": _text(event.get("event_ts")),
    }
    typed |= {name: event[name] for name in _SLACK_TEXTS if isinstance(event.get(name), str)}
    typed |= {name: event[name] for name in _SLACK_OBJECTS if isinstance(event.get(name), dict)}
    return typed


def _linear(delivery: _Delivery) -> _Fields:
    payload = delivery.fields
    named = (_text(payload.get("type")) or delivery.kind.partition(".")[0]).lower()
    event = _LINEAR_EVENTS.get(named, named)
    typed: _Fields = {
        "event": event,
        "action": _text(payload.get("action")),
        "delivery_id": delivery.headers.get("linear-delivery"),
        "organization_id": _text(payload.get("organizationId")),
        "webhook_timestamp": _integer(payload.get("webhookTimestamp")),
        "webhook_id": _text(payload.get("webhookId")),
        "url": _text(payload.get("url")),
        "created_at": _text(payload.get("createdAt")),
        "actor": payload.get("actor"),
    }
    if event in _LINEAR_OBJECTS:
        typed[_LINEAR_OBJECTS[event]] = payload.get("data")
    return typed


def _notion(delivery: _Delivery) -> _Fields:
    payload = delivery.fields
    entity = _object(payload.get("entity"))
    headers = delivery.headers
    return {
        "event": delivery.kind,
        "workspace_id": _text(payload.get("workspace_id")),
        "request_id": headers.get("request-id") or headers.get("x-request-id"),
        "subscription_id": _text(payload.get("subscription_id")),
        "integration_id": _text(payload.get("integration_id")),
        "entity_id": _text(entity.get("id")),
        "entity_type": _text(entity.get("type")),
        "api_version": _text(payload.get("api_version")),
    }


def _cron(delivery: _Delivery) -> _Fields:
    payload = delivery.fields
    tick_at = _text(payload.get("tick_at"))
    return {
        "cron_id": _text(payload.get("cron_id")),
        "schedule": _text(payload.get("schedule")),
        "tick_at": tick_at if tick_at and RFC3339.fullmatch(tick_at) else delivery.received_at,
    }


def _webhook(delivery: _Delivery) -> _Fields:
    return {
        "source": delivery.headers.get("x-webhook-source"),
        "content_type": delivery.headers.get("content-type"),
    }


def _a2a_push(delivery: _Delivery) -> _Fields:
    payload = delivery.fields
    update = _object(payload.get("statusUpdate"))
    state = _text(_object(payload.get("status") or update.get("status")).get("state"))
    artifact = _object(payload.get("artifactUpdate")).get("artifact")
    return {
        "kind": delivery.kind,
        "task_id": _text(payload.get("task_id")),
        "task_state": "canceled" if state == "cancelled" else state,
        "artifact": payload.get("artifact") if artifact is None else artifact,
        "sender": _text(payload.get("sender")),
    }


def _stream(delivery: _Delivery) -> _Fields:
    payload = delivery.fields
    typed: _Fields = {"event": delivery.kind}
    for field, names in _STREAM_FIELDS.items():
        values = (_scalar_text(payload.get(name)) for name in names)
        typed[field] = next((value for value in values if value is not None), None)
    typed["headers"] = dict(delivery.headers)
    return typed


def _object(value: Any) -> Mapping[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None


def _integer(value: JsonValue) -> int | None:
    """Harn types these as 64 bits with a sign."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if -(2**63) <= value < 2**63 else None


def _scalar_text(value: JsonValue) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value)
