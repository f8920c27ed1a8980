"""How activities meet a store that cannot be reached."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from temporalio.exceptions import ApplicationError

from harn_temporal.activities.interruption import Interruption, interruption
from harn_temporal.errors import StoreError, StoreUnavailableError, StoreUpgradedError
from harn_temporal.workflows.activity_types import STORE_UNAVAILABLE

logger = logging.getLogger("harn_temporal.activities")

T = TypeVar("T")

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0


@contextmanager
def store_failures_told() -> Iterator[None]:
    """Tell the workflow of a store that cannot be reached or used as STORE_UNAVAILABLE.

    A damaged store is told likewise: nothing but its repair helps, and until then the dispatch
    waits in sight instead of being counted as failed. So is one that a newer version took over:
    this worker is about to end, and one of that version goes on.
    """
    try:
        yield
    except (StoreUnavailableError, StoreError, StoreUpgradedError) as error:
        raise ApplicationError(str(error), type=STORE_UNAVAILABLE) from error


async def until_written(write: Callable[[], Awaitable[T]]) -> T:
    """Call `write` until the store takes it; what it writes must not be lost or done again.

    A cancellation of the dispatch comes too late to stop it. A worker that shuts down waits for
    the write under way, but not for an outage: then CancelledError is raised. A store that a
    newer version took over is told as by `store_failures_told`.
    """
    pause_s = FIRST_PAUSE_S
    while True:
        try:
            return await _uninterrupted(write())
        except (StoreUnavailableError, StoreError) as error:
            logger.warning("outcome_write_failed", extra={"error": str(error)})
        except StoreUpgradedError as error:
            raise ApplicationError(str(error), type=STORE_UNAVAILABLE) from error
        try:
            await asyncio.sleep(pause_s)
        except asyncio.CancelledError:
            if interruption() in (Interruption.SHUTDOWN, Interruption.GONE):
                raise
        pause_s = min(pause_s * 2, LONGEST_PAUSE_S)


async def _uninterrupted(work: Awaitable[T]) -> T:
    """A transaction commits or fails by itself; wait for it whatever happens to this task."""
    task = asyncio.ensure_future(work)
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            continue
    return task.result()
