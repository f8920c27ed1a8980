"""A pump whose starts are only written down, and what ends a dispatch without any Temporal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from harn_temporal.activities.envelopes import Envelopes
from harn_temporal.activities.pump_loop import Pump
from harn_temporal.contracts import AttemptOutcome, DispatchRequest
from harn_temporal.dispatch_records import end_key, ended, started
from harn_temporal.event_address import with_event
from harn_temporal.eventlog.log import EventLog
from harn_temporal.naming import dispatch_workflow_id, pump_consumer
from harn_temporal.pump_figures import PumpFigures
from harn_temporal.registry import register

LIB = """
def handle(event):
    return event.raw["n"]
"""


class PumpLab:
    """Pumps of one package on one store; `started` holds the requests in their order."""

    def __init__(self, package: Any, harness: Any) -> None:
        self.package = package
        self.log: EventLog = package.log
        self.harness = harness
        self.started: list[DispatchRequest] = []

    async def make(self, max_outstanding: int = 64, start: Any = None, **options: Any) -> Pump:
        manifest = self.package.manifest
        bindings = await register(self.log, manifest.package, manifest.bindings)
        envelopes = Envelopes(
            store_id=self.log.store_id,
            package=manifest.package,
            current={binding.trigger_id: binding for binding in bindings},
            search_attributes=True,
            heartbeat_timeout_ms=30_000,
            **options,
        )
        return Pump(self.log, start or self.start, envelopes, PumpFigures(max_outstanding))

    async def start(self, request: DispatchRequest) -> None:
        self.started.append(request)

    @asynccontextmanager
    async def running(self, pump: Pump) -> AsyncIterator[Pump]:
        stop = asyncio.Event()
        running = asyncio.create_task(pump.run(stop, lifetime_s=60))
        try:
            yield pump
        finally:
            stop.set()
            await running

    async def send(self, count: int, **changes: Any) -> list[str]:
        """Ingest so many events; their ids."""
        return [
            taken.event_id
            for n in range(count)
            for taken in await self.package.ingest(self.harness.event({"n": n}, **changes))
        ]

    async def until_started(self, count: int) -> list[str]:
        async def enough() -> list[str] | None:
            found = [request.event_id for request in self.started]
            return found if len(found) >= count else None

        found: list[str] = await self.harness.until(enough)
        return found

    async def end_attempt(self, request: DispatchRequest, **outcome: Any) -> None:
        """Append what the first attempt of a dispatch leaves when it ends: success, or as told."""
        request = await with_event(self.log, request)
        given = {"attempt": 1, "status": "success", "final": "succeeded"} | outcome
        workflow_id = workflow_id_of(request)
        now_ms = await self.log.query(lambda reader: reader.now_ms)
        batch = started(request, 1, workflow_id=workflow_id, now_ms=now_ms)
        await self.log.append(batch, key=f"{workflow_id}/start")
        batch = ended(
            request,
            AttemptOutcome(**given),
            started_at_ms=now_ms,
            now_ms=now_ms,
            workflow_id=workflow_id,
        )
        await self.log.append(batch, key=end_key(workflow_id, 1))

    async def outstanding(self) -> int:
        return await self.log.query(lambda reader: reader.dispatches.outstanding("demo"))

    async def cursor(self, topic: str = "trigger.inbox.envelopes") -> int:
        return await self.log.query(lambda reader: reader.cursor(topic, pump_consumer("demo")))

    async def lifecycle(self) -> list[tuple[str, dict[str, Any]]]:
        return [(r.kind, r.payload) for r in await self.log.read("orchestrator.lifecycle")]


def workflow_id_of(request: DispatchRequest) -> str:
    return dispatch_workflow_id("demo", request.binding.trigger_id, request.event_id)


@pytest.fixture
def lab(make_package: Callable[..., Any], harness: Any) -> PumpLab:
    return PumpLab(make_package(LIB, harness.trigger("handle")), harness)


@pytest.fixture
def make_lab(make_package: Callable[..., Any], harness: Any) -> Callable[..., PumpLab]:
    return lambda *triggers, lib=LIB: PumpLab(make_package(lib, *triggers), harness)
