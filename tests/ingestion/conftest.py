from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from harn_temporal.bindings import Binding, HandlerTarget
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import EventLog
from harn_temporal.events import TriggerEvent, new_event

NOW_MS = 1_767_323_045_123


class HeldClock:
    def __init__(self) -> None:
        self.now_ms = NOW_MS

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock() -> HeldClock:
    return HeldClock()


@pytest.fixture(params=["memory", "sqlite", "file"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> StoreSettings:
    path = {"sqlite": tmp_path / "events.sqlite", "file": tmp_path / "events"}.get(request.param)
    return StoreSettings(request.param, path)


@pytest.fixture
async def log(settings: StoreSettings, clock: HeldClock) -> AsyncIterator[EventLog]:
    opened = await open_event_log(settings, clock)
    yield opened
    await opened.close()


@pytest.fixture
def two_logs(tmp_path: Path, clock: HeldClock) -> Callable[..., Any]:
    """Opens one SQLite store twice, as two processes do."""

    @asynccontextmanager
    async def open_both() -> AsyncIterator[tuple[EventLog, EventLog]]:
        settings = StoreSettings("sqlite", tmp_path / "shared.sqlite")
        async with AsyncExitStack() as stack:
            first = await open_event_log(settings, clock)
            stack.push_async_callback(first.close)
            second = await open_event_log(settings, clock)
            stack.push_async_callback(second.close)
            yield first, second

    return open_both


@pytest.fixture
def make_binding() -> Callable[..., Binding]:
    def make(trigger_id: str = "new-issue", **changes: Any) -> Binding:
        fields: dict[str, Any] = {
            "package": "triage",
            "trigger_id": trigger_id,
            "version": 1,
            "kind": "webhook",
            "provider": "github",
            "events": ("issues.opened",),
            "handler": HandlerTarget(kind="local", uri="handlers::on_issue"),
            "fingerprint": f"{trigger_id}-1",
        }
        return Binding(**{**fields, **changes})

    return make


@pytest.fixture
def make_event(clock: HeldClock) -> Callable[..., TriggerEvent]:
    def make(**changes: Any) -> TriggerEvent:
        fields: dict[str, Any] = {
            "provider": "github",
            "kind": "issues.opened",
            "payload": {"action": "opened", "n": 0, "empty": [], "id": {"b": 1, "a": "é"}},
            "headers": {"X-GitHub-Delivery": "delivery-1", "X-GitHub-Event": "issues"},
            "clock": clock,
        }
        return new_event(**{**fields, **changes})

    return make
