"""The activity of the pump: its life, between the start of its worker and the end."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import activity

from harn_temporal.activities.heartbeats import beating
from harn_temporal.activities.pump_loop import Pump
from harn_temporal.activities.sweep import Sweep
from harn_temporal.contracts import PumpReport, PumpRequest
from harn_temporal.workflows.activity_types import RUN_PUMP


class PumpActivities:
    """The sweep runs where the pump does, since there is one of it in a package."""

    def __init__(self, pump: Pump, sweep: Sweep, sweep_interval: timedelta) -> None:
        self._pump = pump
        self._sweep = sweep
        self._sweep_interval = sweep_interval

    @activity.defn(name=RUN_PUMP.name)
    async def run_pump(self, message: PumpRequest) -> PumpReport:
        """Returns when the lifetime is over or the worker stops; the next run goes on there."""
        stop = asyncio.Event()
        watcher = asyncio.create_task(_set_at_shutdown(stop))
        sweeping = asyncio.create_task(self._sweep.run(self._sweep_interval.total_seconds()))
        try:
            with beating():
                return await self._pump.run(stop, lifetime_s=message.lifetime_ms / 1000)
        finally:
            watcher.cancel()
            sweeping.cancel()
            await asyncio.gather(watcher, sweeping, return_exceptions=True)


async def _set_at_shutdown(stop: asyncio.Event) -> None:
    await activity.wait_for_worker_shutdown()
    stop.set()
