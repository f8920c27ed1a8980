"""Sees to it that a package has its pump for as long as a worker can host it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from harn_temporal.errors import TemporalUnavailableError

logger = logging.getLogger("harn_temporal.worker")


async def keep_pump(ensure: Callable[[], Awaitable[None]], interval_s: float) -> None:
    """Ensure it after each interval, until cancelled.

    Its workflow may be terminated by hand, or be gone with what Temporal has lost. While the
    service is away nothing is done: whoever waits for it says so.
    """
    while True:
        await asyncio.sleep(interval_s)
        try:
            await ensure()
        except TemporalUnavailableError as error:
            logger.debug("pump_not_ensured", extra={"error": str(error)})
