"""A package on a bench: its manifest, a store in memory, and a clock that the test holds."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Self, TypeVar

from harn_temporal.activities.envelopes import Envelopes
from harn_temporal.bindings import Binding
from harn_temporal.contracts import DEFAULT_HEARTBEAT_TIMEOUT_MS, EventAddress
from harn_temporal.durations import parse_duration
from harn_temporal.errors import UsageError
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import EventLog, Record
from harn_temporal.events import TriggerEvent
from harn_temporal.ingestion import Ingested, ingest
from harn_temporal.manifest import Manifest, load_manifest
from harn_temporal.registry import register
from harn_temporal.testing.building import make_event
from harn_temporal.testing.dispatching import Dispatcher
from harn_temporal.testing.fake_clock import FakeClock
from harn_temporal.testing.results import Delivery, DispatchResult
from harn_temporal.testing.watched_handlers import StandIn

T = TypeVar("T")


class AsyncWorkbench:
    """For `async def` tests: `async with AsyncWorkbench("harn.toml") as bench`.

    `timeout` holds instead of the bindings' own, for handlers that are to overrun it. `agents`
    says what `a2a://` targets answer: a function of the event for each. Raises ManifestError with
    all mistakes at once.
    """

    def __init__(
        self,
        manifest: str | Path,
        *,
        clock: FakeClock | None = None,
        timeout: str | None = None,
        agents: Mapping[str, StandIn] | None = None,
    ) -> None:
        self.manifest: Manifest = load_manifest(Path(manifest))
        self.clock = clock or FakeClock()
        self._timeout_ms = None if timeout is None else parse_duration(timeout)
        self._agents = dict(agents or {})

    def event(
        self,
        provider: str,
        kind: str,
        payload: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        tenant_id: str | None = None,
        dedupe_key: str | None = None,
    ) -> TriggerEvent:
        """As `make_event`, at the time of the bench's clock."""
        return make_event(
            provider,
            kind,
            payload,
            headers=headers,
            tenant_id=tenant_id,
            dedupe_key=dedupe_key,
            clock=self.clock,
        )

    async def __aenter__(self) -> Self:
        self._log = await open_event_log(StoreSettings("memory"), self.clock)
        package = self.manifest.package
        self._bindings = await register(self._log, package, self.manifest.bindings)
        self._dispatcher = Dispatcher(self._log, self.manifest.handlers, self._agents, self.clock)
        self._envelopes = Envelopes(
            store_id=self._log.store_id,
            package=package,
            current={binding.trigger_id: binding for binding in self._bindings},
            search_attributes=False,
            heartbeat_timeout_ms=DEFAULT_HEARTBEAT_TIMEOUT_MS,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._log.close()

    @property
    def log(self) -> EventLog:
        return self._log

    @property
    def bindings(self) -> Sequence[Binding]:
        """The manifest's triggers, with their versions."""
        return self._bindings

    def module(self, name: str | None = None) -> ModuleType:
        """The handlers' module that [exports] calls `name`, lib.py without one: to patch it.

        Each workbench imports the manifest's modules anew, under names of its own.
        """
        return self.manifest.handlers.module(name)

    async def deliver(self, event: TriggerEvent, *, only: str | None = None) -> Delivery:
        """Ingest the event and see each of its dispatches to their end, one after the other.

        With `only`, the id of a trigger, it goes there whatever the trigger's `match` says. The
        clock goes forward by the retry waits. Raises EventError and NotFoundError as `fire` does.
        """
        taken = await ingest(
            self._log, self._bindings, event, package=self.manifest.package, only=only
        )
        return Delivery(event.id, tuple([await self._dispatch(each) for each in taken]))

    async def records(self, topic: str) -> list[Record]:
        """Everything that was appended to a topic, by all deliveries."""
        head = await self._log.query(lambda reader: reader.head(topic))
        return await self._log.read(topic, limit=max(head, 1))

    async def _dispatch(self, taken: Ingested) -> DispatchResult:
        if taken.address is None or taken.status != "accepted":
            return DispatchResult(
                trigger_id=taken.trigger_id,
                binding_key=taken.binding_key,
                event_id=taken.event_id,
                status="filtered" if taken.status == "filtered" else "duplicate",
                error=taken.warning,
            )
        [request] = self._envelopes.requests(await self._envelope(taken.address), _no_definition)
        if self._timeout_ms is not None:
            binding = request.binding.model_copy(update={"timeout_ms": self._timeout_ms})
            request = request.model_copy(update={"binding": binding})
        return await self._dispatcher.dispatch(request, taken.workflow_id)

    async def _envelope(self, address: EventAddress) -> Record:
        [record] = await self._log.read(address.topic, after=address.event_id - 1, limit=1)
        return record


class Workbench:
    """As AsyncWorkbench, for `def` tests: `with Workbench("harn.toml") as bench`.

    It has an event loop of its own, in which `async def` handlers run as well.
    """

    def __init__(
        self,
        manifest: str | Path,
        *,
        clock: FakeClock | None = None,
        timeout: str | None = None,
        agents: Mapping[str, StandIn] | None = None,
    ) -> None:
        self._bench = AsyncWorkbench(manifest, clock=clock, timeout=timeout, agents=agents)
        self.manifest = self._bench.manifest
        self.clock = self._bench.clock

    def __enter__(self) -> Self:
        self._runner = asyncio.Runner()
        self._run(self._bench.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._runner:
            self._run(self._bench.__aexit__(kind, error, traceback))

    @property
    def bindings(self) -> Sequence[Binding]:
        """The manifest's triggers, with their versions."""
        return self._bench.bindings

    def module(self, name: str | None = None) -> ModuleType:
        """See AsyncWorkbench.module."""
        return self._bench.module(name)

    def event(
        self,
        provider: str,
        kind: str,
        payload: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        tenant_id: str | None = None,
        dedupe_key: str | None = None,
    ) -> TriggerEvent:
        """As `make_event`, at the time of the bench's clock."""
        return self._bench.event(
            provider,
            kind,
            payload,
            headers=headers,
            tenant_id=tenant_id,
            dedupe_key=dedupe_key,
        )

    def deliver(self, event: TriggerEvent, *, only: str | None = None) -> Delivery:
        """See AsyncWorkbench.deliver."""
        return self._run(self._bench.deliver(event, only=only))

    def records(self, topic: str) -> list[Record]:
        """Everything that was appended to a topic, by all deliveries."""
        return self._run(self._bench.records(topic))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._runner.run(work)
        work.close()
        raise UsageError("an event loop runs already: use AsyncWorkbench in an `async def` test")


def _no_definition(trigger_id: str, version: int) -> None:
    """The bench's bindings are the current ones: nothing older has to be looked up."""
