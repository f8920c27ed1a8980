"""The waits of a dispatch in which it needs no slot of a consumer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Protocol

from harn_temporal.contracts import AttemptOutcome


class Waits(Protocol):
    """Who is told that a dispatch waits and needs no slot meanwhile."""

    def begins(self, outcome: AttemptOutcome | None, delay: timedelta | None) -> None:
        """After an attempt: for a retry in `delay`, or for a task whose end is not known (None).

        Without an outcome: at a gate, before an attempt, and there again for each wait until
        `ends`: the next gate may hold it longer.

        May raise, to take the dispatch elsewhere; that leaves `Dispatch.run` as it is.
        """

    def ends(self) -> None: ...


@contextmanager
def waiting(
    waits: Waits | None, outcome: AttemptOutcome, delay: timedelta | None
) -> Iterator[None]:
    if waits is None:
        yield
        return
    waits.begins(outcome, delay)
    with at_end(waits.ends):
        yield


@contextmanager
def at_end(act: Callable[[], None]) -> Iterator[None]:
    """Act when the block is left, unless its worker throws the workflow away with it."""
    try:
        yield
    except GeneratorExit:  # outside of the workflow's event loop: it goes on elsewhere
        raise
    except BaseException:
        act()
        raise
    act()
