"""TriggerEvent: what came in, in the form that Harn and this project share."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    JsonValue,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from harn_temporal import ids
from harn_temporal.canonical import PAYLOAD_DEPTH_LIMIT, clean, clean_text
from harn_temporal.clock import Clock, rfc3339, system_clock
from harn_temporal.errors import EventError, NotJsonError
from harn_temporal.providers import RFC3339, delivery_id, typed_payload
from harn_temporal.redaction import redact

_TENANT_ID = re.compile(r"[A-Za-z0-9_-]+")


class SignatureStatus(BaseModel):
    """Whether the sender's signature was checked; `reason` says why it `failed`."""

    model_config = ConfigDict(frozen=True, extra="allow")

    state: Literal["verified", "unsigned", "failed"]
    reason: str | None = None

    @model_validator(mode="after")
    def _failure_has_a_reason(self) -> Self:
        if self.state == "failed" and self.reason is None:
            raise ValueError("a failed signature needs a reason")
        return self

    @model_serializer(mode="wrap")
    def _without_absent(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _without_nulls(serialize(self), "reason")


UNSIGNED = SignatureStatus(state="unsigned")


class TriggerEvent(BaseModel):
    """An event as a handler sees it. Fields that this version does not know are kept.

    `received_at` and `occurred_at` are RFC 3339 in UTC. Secrets in `headers` are blanked, and the
    names are lower-case in events made here. `provider_payload` holds the provider's tag, what is
    known about its payloads, and `raw`, the payload as it came. `batch` lists all members, the
    root first; `raw_body` is base64.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    id: str
    provider: str
    kind: str
    received_at: str
    occurred_at: str | None
    dedupe_key: str
    trace_id: str
    tenant_id: str | None = None
    headers: dict[str, str]
    batch: list[dict[str, JsonValue]] | None = None
    raw_body: str | None = None
    provider_payload: dict[str, JsonValue]
    signature_status: SignatureStatus

    @model_serializer(mode="wrap")
    def _without_absent(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _without_nulls(serialize(self), "batch", "raw_body")

    @property
    def raw(self) -> Any:
        """The payload as it came: what JSON holds, in the shape the provider gave it."""
        return self.provider_payload.get("raw")

    def to_json(self) -> dict[str, Any]:
        """A copy as records hold it: `tenant_id` is null, `batch` and `raw_body` are left out."""
        return self.model_dump()

    @classmethod
    def from_json(cls, value: Any) -> TriggerEvent:
        """An event from its JSON; EventError names every field that is wrong or missing."""
        try:
            event = cls.model_validate(clean(value))
        except NotJsonError as error:
            raise EventError(f"the event is not JSON: {error}") from error
        except ValidationError as error:
            problems = "; ".join(_problem(detail) for detail in error.errors())
            raise EventError(f"not a trigger event: {problems}") from error
        check_tenant_id(event.tenant_id)
        return event


def new_event(
    *,
    provider: str,
    kind: str,
    payload: Any,
    headers: Mapping[str, str] | None = None,
    tenant_id: str | None = None,
    dedupe_key: str | None = None,
    occurred_at: str | None = None,
    signature: SignatureStatus | None = None,
    raw_body: bytes | None = None,
    clock: Clock = system_clock,
) -> TriggerEvent:
    """An event that has just come in: redacted, typed by provider, with ids of its own.

    Without `dedupe_key` it is the sender's delivery id, else the event's own id. Raises EventError
    for a tenant id, a time or a payload that must not be recorded.
    """
    check_tenant_id(tenant_id)
    if occurred_at is not None and not RFC3339.fullmatch(occurred_at):
        raise EventError(
            f"occurred_at is {occurred_at!r}; give an RFC 3339 time such as 2026-01-31T09:30:00Z"
        )
    for field, text in (("provider", provider), ("kind", kind)):
        if not text:
            raise EventError(f"the event's {field} is empty")
    try:
        raw = clean(payload, depth_limit=PAYLOAD_DEPTH_LIMIT)
    except NotJsonError as error:
        raise EventError(f"the payload cannot be recorded: {error}") from error
    provider, kind = clean_text(provider), clean_text(kind)
    given = {clean_text(name).lower(): clean_text(value) for name, value in (headers or {}).items()}
    kept = redact(given)
    received_at = rfc3339(clock())
    event_id = ids.event_id(clock)
    return TriggerEvent(
        id=event_id,
        provider=provider,
        kind=kind,
        received_at=received_at,
        occurred_at=occurred_at,
        dedupe_key=clean_text(dedupe_key or delivery_id(provider, given) or event_id),
        trace_id=ids.trace_id(clock),
        tenant_id=tenant_id,
        headers=kept,
        raw_body=None if raw_body is None else base64.b64encode(raw_body).decode("ascii"),
        provider_payload=typed_payload(provider, kind, kept, raw, received_at),
        signature_status=signature or UNSIGNED,
    )


def check_tenant_id(tenant_id: str | None) -> None:
    """Raises EventError unless `tenant_id` can be part of a topic's name as it is."""
    if tenant_id is not None and not _TENANT_ID.fullmatch(tenant_id):
        raise EventError(
            f"the tenant id {tenant_id!r} is not allowed; use letters, digits, `_` and `-` only"
        )


def _without_nulls(dumped: dict[str, Any], *names: str) -> dict[str, Any]:
    for name in names:
        if dumped.get(name) is None:
            dumped.pop(name, None)
    return dumped


def _problem(detail: Any) -> str:
    place = ".".join(str(part) for part in detail["loc"]) or "the event"
    return f"{place}: {detail['msg']}"
