"""Heartbeats from the background: they say that the worker lives, and bring cancellations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio import activity

LONGEST_PAUSE_S = 1.0
"""A cancellation arrives with the answer to a heartbeat, so it waits no longer than this."""


@asynccontextmanager
async def beating() -> AsyncIterator[None]:
    """Beat at once and then regularly, well within the activity's heartbeat timeout."""
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
    while True:
        activity.heartbeat()
        await asyncio.sleep(pause_s)
