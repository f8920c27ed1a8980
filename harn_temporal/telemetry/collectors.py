"""What is read at the moment of a scrape: the store, the scheduler, and the SDK's own metrics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING

from prometheus_client.registry import Collector

from harn_temporal.dedupe_figures import dropped
from harn_temporal.errors import HarnTemporalError
from harn_temporal.telemetry import families
from harn_temporal.telemetry.sdk_metrics import scrape_sdk
from harn_temporal.telemetry.store_metrics import counter, gauge, store_gauges

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from harn_temporal.attempt_figures import AttemptFigures
    from harn_temporal.eventlog.log import EventLog
    from harn_temporal.pump_figures import PumpFigures
    from harn_temporal.scheduler.policy import Policy
    from harn_temporal.scheduler_figures import SchedulerFigures, Series

logger = logging.getLogger("harn_temporal.telemetry")

STORE_PATIENCE_S = 5.0
"""A scrape does without the store's families rather than wait longer."""

MOST_SCHEDULER_SERIES = 1000
"""Of each scheduler counter: those that this process met last."""


class WorkerCollector(Collector):
    """Figures of a running worker."""

    def __init__(
        self, attempts: AttemptFigures, scheduler: SchedulerFigures, pump: PumpFigures
    ) -> None:
        self._attempts = attempts
        self._scheduler = scheduler
        self._pump = pump

    def collect(self) -> Iterator[Metric]:
        running = dict(self._attempts.running)
        yield gauge(families.IN_FLIGHT, (((each,), n) for each, n in running.items()))
        yield counter(families.DEDUPED, dropped().items())
        yield gauge(families.PUMP_HOLDER, [((), float(self._pump.running))])
        for family, counts in (
            (families.SELECTIONS, self._scheduler.selections),
            (families.DEFERRALS, self._scheduler.deferrals),
            (families.PROMOTIONS, self._scheduler.starvation_promotions),
        ):
            yield counter(family, _latest(counts))


class StoreCollector(Collector):
    """Gauges of the shared store, from the one process that has the pump, or that is to `always`.

    Asked from a thread of the HTTP server; the store is read through the event loop.
    """

    def __init__(
        self,
        log: EventLog,
        loop: asyncio.AbstractEventLoop,
        pump: PumpFigures,
        policy: Policy,
        *,
        always: bool = False,
    ) -> None:
        self._always = always
        self._log = log
        self._loop = loop
        self._pump = pump
        self._policy = policy

    def collect(self) -> Iterable[Metric]:
        if not (self._pump.running or self._always):
            return [gauge(families.STORE_READS_FAILED, [((), 0)])]
        reading = self._log.query(lambda reader: store_gauges(reader, self._policy))
        asked = asyncio.run_coroutine_threadsafe(reading, self._loop)
        try:
            found = asked.result(STORE_PATIENCE_S)
        except (HarnTemporalError, FutureTimeoutError, RuntimeError) as error:
            asked.cancel()
            logger.warning("store_not_scraped", extra={"error": str(error) or "it takes too long"})
            return [gauge(families.STORE_READS_FAILED, [((), 1)])]
        return [*found, gauge(families.STORE_READS_FAILED, [((), 0)])]


class SdkCollector(Collector):
    """The metrics of the Temporal SDK in this process, which has an endpoint of its own."""

    def __init__(self, address: str) -> None:
        self._address = address

    def collect(self) -> Iterable[Metric]:
        return scrape_sdk(self._address)


def _latest(counts: Mapping[Series, int]) -> list[tuple[Series, float]]:
    return [(series, float(n)) for series, n in list(counts.items())[-MOST_SCHEDULER_SERIES:]]
