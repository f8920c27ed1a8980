"""SIGTERM and SIGINT: the first asks for an orderly end, the second ends at once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from harn_temporal.cli.output import note


class StopSignals:
    """Made inside a running loop. `told` is set by the first signal, `number` is which."""

    def __init__(self) -> None:
        self.told = asyncio.Event()
        self.number: signal.Signals | None = None
        self._interrupt: Callable[[], object] | None = None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._receive, number)

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Inside, the first signal cancels the current task: there is nothing to drain yet."""
        task = asyncio.current_task()
        assert task is not None
        self._interrupt = task.cancel
        try:
            yield
        finally:
            self._interrupt = None

    def _receive(self, number: signal.Signals) -> None:
        if self.told.is_set():
            with suppress(OSError, ValueError):  # nobody reads any more, or a handler has closed it
                sys.stdout.flush()
            os._exit(128 + number)
        self.told.set()
        self.number = number
        note("stopping: handlers may end what they do; a second signal ends at once")
        if self._interrupt is not None:
            self._interrupt()
