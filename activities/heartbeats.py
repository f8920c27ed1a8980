"""Heartbeats from the background: they say that the worker lives, and bring cancellations."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from temporalio import activity

LONGEST_PAUSE_S = 1.0
"""A cancellation arrives with the answer to a heartbeat, so it waits no longer than this."""

FIRST_PAUSE_S = 0.2
"""Most activities end sooner, and cost the server no heartbeat at all."""


@contextmanager
def beating() -> Iterator[None]:
    """Beat soon and then regularly, well within the activity's heartbeat timeout."""
    timeout = activity.info().heartbeat_timeout
    if timeout is None:
        yield
        return
    pause_s = min(LONGEST_PAUSE_S, timeout.total_seconds() / 4)
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle

    def beat() -> None:
        nonlocal timer
        activity.heartbeat()
        timer = loop.call_later(pause_s, beat)

    timer = loop.call_later(min(FIRST_PAUSE_S, pause_s), beat)
    try:
        yield
    finally:
        timer.cancel()
