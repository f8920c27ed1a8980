from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harn_temporal.bindings import Binding, HandlerTarget, When
from harn_temporal.canonical import clean, encode
from harn_temporal.contracts import DispatchRequest, EventAddress
from harn_temporal.eventlog.records import Append, Record
from harn_temporal.events import TriggerEvent
from harn_temporal.retry import Linear, RetryPolicy

EVENT: dict[str, Any] = {
    "id": "trigger_evt_1",
    "provider": "github",
    "kind": "issues.opened",
    "received_at": "2026-01-02T03:04:05.000Z",
    "occurred_at": None,
    "dedupe_key": "delivery-1",
    "trace_id": "trace_1",
    "tenant_id": None,
    "headers": {"x-github-event": "issues"},
    "provider_payload": {"provider": "github", "event": "issues", "raw": {"action": "opened"}},
    "signature_status": {"state": "unsigned"},
}


@pytest.fixture
def event_json() -> dict[str, Any]:
    return {**EVENT}


@pytest.fixture
def make_binding() -> Callable[..., Binding]:
    def make(
        uri: str = "handlers::on_issue",
        *,
        kind: str = "local",
        when: str | None = None,
        max_attempts: int = 3,
        **changes: Any,
    ) -> Binding:
        fields: dict[str, Any] = {
            "package": "triage",
            "trigger_id": "new-issue",
            "version": 2,
            "kind": "webhook",
            "provider": "github",
            "events": ("issues.opened",),
            "handler": HandlerTarget(kind=kind, uri=uri),
            "when": None if when is None else When(kind="cel", source=when),
            "retry": RetryPolicy(schedule=Linear(interval_ms=1500), max_attempts=max_attempts),
            "fingerprint": "f" * 64,
        }
        return Binding(**{**fields, **changes})

    return make


@pytest.fixture
def make_request(make_binding: Callable[..., Binding]) -> Callable[..., DispatchRequest]:
    def make(
        binding: Binding | None = None,
        *,
        tenant_id: str | None = None,
        replay_of_event_id: str | None = None,
        **changes: Any,
    ) -> DispatchRequest:
        event = TriggerEvent.from_json({**EVENT, "tenant_id": tenant_id, **changes})
        return DispatchRequest(
            store_id="store",
            binding=binding or make_binding(),
            event_id=event.id,
            trace_id=event.trace_id,
            tenant_id=tenant_id,
            address=EventAddress(topic="trigger.inbox.envelopes", event_id=1),
            event=event,
            replay_of_event_id=replay_of_event_id,
        )

    return make


@pytest.fixture
def stored() -> Callable[[list[Append]], list[Record]]:
    """Turns a batch into the records that a store would give back."""

    def store(batch: list[Append]) -> list[Record]:
        return [
            Record(
                topic=append.topic,
                event_id=index,
                kind=append.kind,
                raw=encode(clean(append.payload)),
                headers=append.headers,
                occurred_at_ms=append.occurred_at_ms or 0,
            )
            for index, append in enumerate(batch, start=1)
        ]

    return store
