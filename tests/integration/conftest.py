"""A package in a folder of its own, its store, and what a test asks of both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from temporalio.client import WorkflowHandle

from harn_temporal.contracts import DispatchOutcome, DispatchRequest, DispatchState
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import EventLog, Record
from harn_temporal.events import TriggerEvent, new_event
from harn_temporal.ingestion import Ingested, ingest
from harn_temporal.manifest import Manifest, load_manifest
from harn_temporal.registry import register

T = TypeVar("T")

BOUND_S = 30.0


@dataclass
class Package:
    """A manifest with handlers, and a store that it uses."""

    folder: Path
    manifest: Manifest
    log: EventLog

    async def ingest(self, event: TriggerEvent, only: str | None = None) -> list[Ingested]:
        bindings = await register(self.log, self.manifest.package, self.manifest.bindings)
        return await ingest(self.log, bindings, event, package=self.manifest.package, only=only)

    async def request(self, payload: Any = None, **changes: Any) -> DispatchRequest:
        """The request of a dispatch for a trigger, its envelope being in the log.

        The trigger is the first one, or `trigger_id`.
        """
        trigger_id = changes.pop("trigger_id", self.manifest.bindings[0].trigger_id)
        event = changes.pop("event", None) or push_event(payload)
        bindings = await register(self.log, self.manifest.package, self.manifest.bindings)
        binding = next(each for each in bindings if each.trigger_id == trigger_id)
        taken = await ingest(
            self.log,
            bindings,
            event,
            package=self.manifest.package,
            only=binding.trigger_id,
        )
        address = taken[0].address
        assert address is not None
        given: dict[str, Any] = {
            "store_id": self.log.store_id,
            "binding": binding,
            "event_id": event.id,
            "trace_id": event.trace_id,
            "tenant_id": event.tenant_id,
            "address": address,
            "event": event,
        }
        return DispatchRequest(**given | changes)

    async def records(self, *topics: str) -> list[Record]:
        return [record for topic in topics for record in await self.log.read(topic)]


def push_event(payload: Any = None, **changes: Any) -> TriggerEvent:
    given: dict[str, Any] = {"provider": "github", "kind": "push", "payload": payload or {"n": 1}}
    return new_event(**given | changes)


class Harness:
    """Functions of this folder's tests; conftest files cannot be imported."""

    FAST = 'retry = { max = 3, backoff = "linear", delay_ms = 30 }'
    event = staticmethod(push_event)

    @staticmethod
    def trigger(handler: str, *lines: str, trigger_id: str = "on-push") -> str:
        """A trigger for pushes whose handler is a function of lib.py."""
        return "\n".join(
            [
                f'id = "{trigger_id}"',
                'kind = "webhook"',
                'provider = "github"',
                'match = { events = ["push"] }',
                f'handler = "handlers::{handler}"',
                *lines,
            ]
        )

    @staticmethod
    def settings(backend: str, folder: Path) -> StoreSettings:
        return StoreSettings.from_environment(folder, {"HARN_EVENT_LOG_BACKEND": backend})

    @staticmethod
    async def until(fact: Callable[[], Awaitable[T]], bound_s: float = BOUND_S) -> T:
        """What `fact` gives once it is true. It is a fact that is awaited, never a duration."""
        async with asyncio.timeout(bound_s):
            while not (found := await fact()):  # noqa: ASYNC110 - others make it true
                await asyncio.sleep(0.02)
            return found

    @staticmethod
    async def state(handle: WorkflowHandle[Any, DispatchOutcome]) -> DispatchState:
        return await handle.query("state", result_type=DispatchState)


@pytest.fixture(scope="session")
def harness() -> type[Harness]:
    return Harness


@pytest.fixture
def backend() -> str:
    return "memory"


@pytest.fixture
async def log(backend: str, tmp_path: Path) -> AsyncIterator[EventLog]:
    opened = await open_event_log(Harness.settings(backend, tmp_path))
    yield opened
    await opened.close()


@pytest.fixture
def make_package(log: EventLog, tmp_path: Path) -> Callable[..., Package]:
    def make(lib: str, *triggers: str, package: str = "demo") -> Package:
        folder = tmp_path / package
        folder.mkdir()
        (folder / "lib.py").write_text(lib)
        path = folder / "harn.toml"
        head = f'[package]\nname = "{package}"\n\n[exports]\nhandlers = "lib.py"\n'
        path.write_text(head + "".join(f"\n[[triggers]]\n{trigger}\n" for trigger in triggers))
        return Package(folder, load_manifest(path), log)

    return make
