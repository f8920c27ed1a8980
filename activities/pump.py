"""The activity of the pump: its life, between the start of its worker and the end."""

from __future__ import annotations

import asyncio

from temporalio import activity

from harn_temporal.activities.heartbeats import beating
from harn_temporal.activities.pump_loop import Pump
from harn_temporal.contracts import PumpReport, PumpRequest
from harn_temporal.workflows.activity_types import RUN_PUMP


class PumpActivities:
    def __init__(self, pump: Pump) -> None:
        self._pump = pump

    @activity.defn(name=RUN_PUMP.name)
    async def run_pump(self, message: PumpRequest) -> PumpReport:
        """Returns when the lifetime is over or the worker stops; the next run goes on there."""
        stop = asyncio.Event()
        watcher = asyncio.create_task(_set_at_shutdown(stop))
        try:
            async with beating():
                return await self._pump.run(stop, lifetime_s=message.lifetime_ms / 1000)
        finally:
            watcher.cancel()


async def _set_at_shutdown(stop: asyncio.Event) -> None:
    await activity.wait_for_worker_shutdown()
    stop.set()
