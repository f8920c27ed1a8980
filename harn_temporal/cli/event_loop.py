"""The event loop of a command that runs handlers, which share it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from harn_temporal.errors import HandlerStoppedLoopError

T = TypeVar("T")


def run_with_handlers(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`. Raises HandlerStoppedLoopError where the loop ended and `work` had not."""
    main: asyncio.Task[Any] | None = None
    stopped = False

    async def tracked() -> T:
        nonlocal main
        main = asyncio.current_task()
        return await work

    try:
        with asyncio.Runner() as runner:
            try:
                return runner.run(tracked())
            except RuntimeError:
                stopped = main is not None and not main.done()
                raise
    except RuntimeError as error:  # also from tidying up, where it is stopped once more
        if stopped:
            raise HandlerStoppedLoopError(
                "a handler stopped the event loop that it shares with this command, with "
                "`loop.stop()` or the like. Take that out: to end its own attempt, a handler "
                "returns or raises. What was under way is taken up by the next worker."
            ) from error
        raise
