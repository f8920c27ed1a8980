"""The EventLog as commands that only read it open it: one that exists, never a new one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from harn_temporal.cli.options import STATE_DIR_VARIABLE, CommonOptions
from harn_temporal.errors import StoreUnavailableError
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import EventLog

T = TypeVar("T")


def reading(options: CommonOptions, work: Callable[[EventLog], Coroutine[Any, Any, T]]) -> T:
    """Run `work` on the log of the command. Raises StoreUnavailableError where there is none."""

    async def opened() -> T:
        async with existing_log(options) as log:
            return await work(log)

    return asyncio.run(opened())


@asynccontextmanager
async def existing_log(options: CommonOptions) -> AsyncIterator[EventLog]:
    settings = StoreSettings.from_environment(options.state_dir, os.environ)
    if settings.path is not None and not settings.path.exists():
        raise StoreUnavailableError(
            f"there is no EventLog at {settings.path}. The first `harn-temporal up`, `fire` or "
            f"`ingest` makes one; --state-dir or {STATE_DIR_VARIABLE} names another place."
        )
    log = await open_event_log(settings)
    try:
        yield log
    finally:
        await log.close()
