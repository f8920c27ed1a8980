"""The exposition of a store for who has nothing but the store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from harn_temporal.telemetry.store_metrics import store_counters, store_gauges

if TYPE_CHECKING:
    from harn_temporal.eventlog.log import EventLog, Reader
    from harn_temporal.scheduler.policy import Policy


async def store_exposition(log: EventLog, policy: Policy) -> bytes:
    """In the text format of Prometheus, all of one moment."""

    def look(reader: Reader) -> list[Metric]:
        return [*store_counters(reader, policy), *store_gauges(reader, policy)]

    registry = CollectorRegistry()
    registry.register(_Read(await log.query(look)))
    return generate_latest(registry)


class _Read(Collector):
    def __init__(self, found: Iterable[Metric]) -> None:
        self._found = found

    def collect(self) -> Iterable[Metric]:
        return self._found
