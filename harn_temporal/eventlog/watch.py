"""Waiting for appends: those of this process at once, those of others by looking at the store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from harn_temporal.errors import HarnTemporalError, StoreError

POLL_SECONDS = 0.05


class Watch:
    """Marks count what was noticed. The store is looked at only while somebody waits.

    `position` is asked for in the store's thread and grows with every append by anyone.
    """

    def __init__(self, position: Callable[[], Awaitable[int]]) -> None:
        self._position = position
        self._known = 0
        self._loop = asyncio.get_running_loop()
        self._mark = 1
        self._unseen: int | None = None
        self._waiters: set[asyncio.Future[None]] = set()
        self._poller: asyncio.Task[None] | None = None
        self._closed = False

    async def start(self) -> None:
        self._known = await self._position()

    def appended(self, position: int) -> None:
        """Called from any thread after a commit of our own."""
        self._unseen = position
        if not self._waiters:
            return  # who waits from now on looks at `_unseen` first; the loop is left alone
        try:
            self._loop.call_soon_threadsafe(self._look)
        except RuntimeError:
            if not self._loop.is_closed():
                raise

    async def changed(self, since: int, timeout: float) -> int:  # noqa: ASYNC109 - as in EventLog
        try:
            async with asyncio.timeout(timeout):
                while self._mark <= since:
                    await self._next_mark()
        except TimeoutError:
            pass
        return self._mark

    async def close(self) -> None:
        self._closed = True
        self._wake(StoreError("the EventLog was closed while something waited for appends"))
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.wait([self._poller])

    async def _next_mark(self) -> None:
        waiter = self._loop.create_future()
        self._waiters.add(waiter)
        self._look()
        if self._poller is None:
            self._poller = self._loop.create_task(self._poll())
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)

    async def _poll(self) -> None:
        try:
            while self._waiters and not self._closed:
                self._note(await self._position())
                await asyncio.sleep(POLL_SECONDS)
        except HarnTemporalError as error:
            self._wake(error)
        finally:
            self._poller = None

    def _look(self) -> None:
        position, self._unseen = self._unseen, None
        if position is not None:
            self._note(position)

    def _note(self, position: int) -> None:
        if position <= self._known:
            return  # an append is told twice: by who made it, and by the look that follows
        self._known = position
        self._mark += 1
        self._wake(None)

    def _wake(self, error: HarnTemporalError | None) -> None:
        for waiter in self._waiters:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)
