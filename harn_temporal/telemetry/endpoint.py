"""The HTTP endpoint `/metrics` of a worker: one registry of our own, one scrape for everything."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, disable_created_metrics, start_http_server

from harn_temporal.a2a import metrics as hops
from harn_temporal.errors import UsageError
from harn_temporal.telemetry.collectors import SdkCollector, StoreCollector, WorkerCollector
from harn_temporal.telemetry.process_metrics import ProcessMetrics

if TYPE_CHECKING:
    from harn_temporal.eventlog.log import EventLog
    from harn_temporal.scheduler.policy import Policy
    from harn_temporal.worker import RunningWorker


@dataclass(frozen=True)
class WorkerMetrics:
    """Of one process. Let `process` see everything from the start, and `watch` the worker then."""

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    process: ProcessMetrics = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "process", ProcessMetrics(self.registry))
        self.registry.register(hops.HOPS)
        self.registry.register(hops.DURATION)

    def watch(
        self,
        worker: RunningWorker,
        log: EventLog,
        policy: Policy,
        sdk_address: str | None,
        *,
        of_store: bool = False,
    ) -> None:
        """Call it in the event loop that `log` is used in.

        With `of_store` the store's figures are told here even where the pump runs elsewhere.
        """
        loop = asyncio.get_running_loop()
        figures = WorkerCollector(worker.attempts, worker.scheduler, worker.pump)
        self.registry.register(figures)
        self.registry.register(StoreCollector(log, loop, worker.pump, policy, always=of_store))
        if sdk_address is not None:
            self.registry.register(SdkCollector(sdk_address))


@contextmanager
def served(registry: CollectorRegistry, host: str, port: int) -> Iterator[str]:
    """Serve the registry as long as the context is open; gives the address of `/metrics`.

    Port 0 is any free one. Raises UsageError where the address cannot be had.
    """
    disable_created_metrics()  # type: ignore[no-untyped-call] # a series more for each, unused
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise UsageError(
            f"metrics cannot be served at {host}:{port}: {error.strerror or error}. "
            "--metrics-port 0 takes a free port."
        ) from error
    try:
        yield f"http://{host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
