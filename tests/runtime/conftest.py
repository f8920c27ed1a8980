"""A request whose envelope is in a store in memory, without any Temporal."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from harn_temporal.bindings import Binding, HandlerTarget
from harn_temporal.contracts import DispatchRequest, EventAddress
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import EventLog
from harn_temporal.events import new_event
from harn_temporal.retry import Linear, RetryPolicy


@pytest.fixture
async def log() -> AsyncIterator[EventLog]:
    opened = await open_event_log(StoreSettings("memory"))
    yield opened
    await opened.close()


@pytest.fixture
def binding() -> Binding:
    return Binding(
        package="demo",
        trigger_id="on-push",
        version=1,
        kind="webhook",
        provider="github",
        handler=HandlerTarget(kind="local", uri="handle"),
        retry=RetryPolicy(schedule=Linear(interval_ms=10), max_attempts=3),
        fingerprint="f",
    )


@pytest.fixture
def request_(binding: Binding) -> DispatchRequest:
    event = new_event(provider="github", kind="push", payload={"n": 1})
    return DispatchRequest(
        store_id="store",
        binding=binding,
        event_id=event.id,
        trace_id=event.trace_id,
        address=EventAddress(topic="trigger.inbox.envelopes", event_id=1),
        event=event,
    )
