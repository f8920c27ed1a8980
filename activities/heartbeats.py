"""Heartbeats from the background: they say that the worker lives, and bring cancellations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio import activity

LONGEST_PAUSE_S = 1.0
"""A cancellation arrives with the answer to a heartbeat, so it waits no longer than this."""

FIRST_PAUSE_S = 0.2
"""Most activities end sooner, and cost the server no heartbeat at all."""


@asynccontextmanager
async def beating() -> AsyncIterator[None]:
    """Beat soon and then regularly, well within the activity's heartbeat timeout."""
    timeout = activity.info().heartbeat_timeout
    if timeout is None:
        yield
        return
    task = asyncio.create_task(_beat(min(LONGEST_PAUSE_S, timeout.total_seconds() / 4)))
    try:
        yield
    finally:
        task.cancel()


async def _beat(pause_s: float) -> None:
    await asyncio.sleep(min(FIRST_PAUSE_S, pause_s))
    while True:
        activity.heartbeat()
        await asyncio.sleep(pause_s)
