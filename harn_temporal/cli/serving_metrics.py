"""The metrics endpoint of `up` and `worker`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harn_temporal.worker import Observers, RunningWorker

if TYPE_CHECKING:
    from harn_temporal.cli.metrics_options import MetricsAddress
    from harn_temporal.eventlog.log import EventLog
    from harn_temporal.temporal.connect import Connection


class ServedMetrics:
    """`observing` comes before the worker runs, so that nothing is missed; `serving` after."""

    def __init__(self, address: MetricsAddress) -> None:
        from harn_temporal.telemetry.endpoint import WorkerMetrics

        self._address = address
        self._metrics = WorkerMetrics()

    def observing(self, log: EventLog) -> Observers:
        process = self._metrics.process
        log.observe(process.appended)
        return Observers(on_admission=process.admitted, on_start=process.started)

    @contextmanager
    def serving(
        self, worker: RunningWorker, log: EventLog, connection: Connection
    ) -> Iterator[str]:
        """Gives the address of `/metrics`. Raises UsageError for a port that cannot be had."""
        from harn_temporal.scheduler import read_policy
        from harn_temporal.telemetry.endpoint import served

        policy, _ = read_policy(os.environ)
        self._metrics.watch(
            worker, log, policy, connection.sdk_metrics, of_store=self._address.of_store
        )
        with served(self._metrics.registry, self._address.host, self._address.port) as url:
            yield url
