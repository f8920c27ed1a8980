"""One call of a handler: until it ends, its time is up, or its dispatch or worker stops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from harn_temporal.activities.interruption import Interruption
from harn_temporal.context import HandlerContext, mark_cancelled
from harn_temporal.contracts import AttemptStatus, ErrorClass, RemoteTask
from harn_temporal.dispatch_records import error_class_of
from harn_temporal.durations import format_duration
from harn_temporal.errors import Denied, Waiting
from harn_temporal.events import TriggerEvent
from harn_temporal.handlers import Handler

logger = logging.getLogger("harn_temporal.activities")

PATIENCE_S = 5.0
"""How long a handler that was told to stop may take for it before it is left behind."""


@dataclass(frozen=True)
class HandlerEnd:
    """How a call ended, before the retry policy says what follows.

    With `pending` it has not ended: it goes on as `remote_task`, and the dispatch follows it.
    """

    status: AttemptStatus
    result: Any = None
    error: str | None = None
    error_class: ErrorClass | None = None
    retryable: bool = True
    retry_after_ms: int | None = None
    """The next attempt is not before this, whatever the retry policy says."""
    remote_task: RemoteTask | None = None
    pending: bool = False


class HandlerCall:
    """`interruption` tells why a CancelledError came; SHUTDOWN and GONE are raised on."""

    def __init__(
        self,
        handler: Handler,
        event: TriggerEvent,
        context: HandlerContext,
        executor: Executor,
        *,
        interruption: Callable[[], Interruption],
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._handler = handler
        self._event = event
        self._context = context
        self._executor = executor
        self._interruption = interruption
        self._patience_s = patience_s

    async def run(self, timeout_ms: int) -> HandlerEnd:
        call = self._handler.call(self._event, self._context, self._executor)
        task = asyncio.ensure_future(call)
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        while True:
            remaining = deadline - asyncio.get_running_loop().time()
            try:
                done, _ = await asyncio.wait({task}, timeout=max(remaining, 0))
            except asyncio.CancelledError:
                why = self._interruption()
                if why is Interruption.IGNORED:
                    continue
                await self._stop(task)
                if why is not Interruption.CANCELLED:
                    raise
                return HandlerEnd("cancelled", error="cancelled")
            if done:
                return _end_of(task)
            await self._stop(task)
            limit = format_duration(timeout_ms)
            return HandlerEnd("timeout", error=f"the handler did not end within {limit}")

    async def _stop(self, task: asyncio.Future[Any]) -> None:
        """Tell the handler to stop, and wait a moment so that it can tidy up."""
        mark_cancelled(self._context)
        if self._handler.is_async:
            task.cancel()
        await asyncio.wait({task}, timeout=self._patience_s)
        if task.done():
            _ = task.cancelled() or task.exception()  # seen: it is of no interest any more
            return
        task.cancel()
        logger.warning(
            "handler_left_behind",
            extra={"handler": self._handler.name, "event_id": self._context.event_id},
        )


def _end_of(task: asyncio.Future[Any]) -> HandlerEnd:
    if task.cancelled():
        return HandlerEnd(
            "failed", error="the handler cancelled itself", error_class="handler_panic"
        )
    error = task.exception()
    if error is None:
        return HandlerEnd("success", result=task.result())
    if isinstance(error, Waiting):
        return HandlerEnd("waiting", error=str(error) or None)
    if isinstance(error, Denied):
        return HandlerEnd("denied", error=describe(error), error_class=error_class_of(error))
    return HandlerEnd(
        "failed",
        error=describe(error),
        error_class=error_class_of(error),
        retryable=not isinstance(error, NotImplementedError),
    )


def describe(error: BaseException) -> str:
    """The type and text of an exception whose `__str__` is a handler's own and may raise."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a user's code; its failure must not hide the first one
        text = "its text cannot be shown"
    name = type(error).__name__
    return f"{name}: {text}" if text else name
