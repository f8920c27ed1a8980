"""Tells dispatches that wait at a gate to ask again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from harn_temporal.errors import UnavailableError
from harn_temporal.gates.decisions import Wake

logger = logging.getLogger("harn_temporal.gates")

Signal = Callable[[str], Awaitable[None]]
"""Signals the workflow with an id, if it is there. Raises UnavailableError."""

SIDE_BY_SIDE = 8


class Wakes:
    """Signals in the background: one that is lost costs its dispatch no more than a timer."""

    def __init__(self, signal: Signal) -> None:
        self._signal = signal
        self._room = asyncio.Semaphore(SIDE_BY_SIDE)
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, wakes: Iterable[Wake]) -> None:
        self.tell(wake.holder for wake in wakes)

    def tell(self, holders: Iterable[str]) -> None:
        for holder in dict.fromkeys(holders):
            task = asyncio.create_task(self._send(holder))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def sent(self) -> None:
        """Wait until everything has been told, or could not be."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def _send(self, holder: str) -> None:
        async with self._room:
            try:
                await self._signal(holder)
            except UnavailableError as error:
                logger.info("gate_signal_lost", extra={"holder": holder, "error": str(error)})


async def no_signal(holder: str) -> None:
    """For whoever has no Temporal at hand."""
