"""What a handler is told about the attempt it makes."""

from __future__ import annotations

import logging
import threading
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any

_LOGGER = logging.getLogger("harn_temporal.handler")


@dataclass(frozen=True)
class HandlerContext:
    """The second argument of a handler that wants it.

    `attempt` counts from 1 up to `max_attempts`. `deadline_ms` is when the attempt times out, in
    milliseconds since the epoch. `log` is a standard logger that adds these ids to each record.
    """

    event_id: str
    trace_id: str
    trigger_id: str
    binding_key: str
    attempt: int
    max_attempts: int
    deadline_ms: int
    tenant_id: str | None = None
    _cancellation: threading.Event = field(
        default_factory=threading.Event, repr=False, compare=False
    )

    @property
    def cancelled(self) -> bool:
        """Whether to stop: someone cancelled, time is up, or the worker ends. Any thread may ask.

        An `async def` handler gets `asyncio.CancelledError` as well; a `def` handler has this only.
        """
        return self._cancellation.is_set()

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        return _HandlerLog(
            _LOGGER,
            {
                "event_id": self.event_id,
                "trace_id": self.trace_id,
                "trigger_id": self.trigger_id,
                "binding_key": self.binding_key,
                "attempt": self.attempt,
                "tenant_id": self.tenant_id,
            },
        )


def mark_cancelled(context: HandlerContext) -> None:
    """Makes `context.cancelled` true, for good. For whoever runs the handler, not for handlers."""
    context._cancellation.set()  # noqa: SLF001 - the one writer, kept off the handler's own view


class _HandlerLog(logging.LoggerAdapter[logging.Logger]):
    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        """Keeps a caller's own `extra`, which LoggerAdapter drops before Python 3.13."""
        kwargs["extra"] = {**(self.extra or {}), **(kwargs.get("extra") or {})}
        return msg, kwargs
