"""What the attempts of a process tell of themselves; telemetry takes it from here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class StartedAttempt:
    """The first attempt of a dispatch, which has just begun. `received_at` is RFC 3339."""

    trigger_id: str
    binding_key: str
    provider: str
    received_at: str
    started_at_ms: int


@dataclass(slots=True)
class AttemptFigures:
    """`on_start` is called for the first attempt of each dispatch that is no replay.

    It must be quick and must not raise.
    """

    running: Counter[str] = field(default_factory=Counter)
    """Attempts that run in this process, by trigger id. A trigger without any is not in it."""
    on_start: Callable[[StartedAttempt], None] | None = field(default=None, repr=False)

    @contextmanager
    def running_one(self, trigger_id: str) -> Iterator[None]:
        self.running[trigger_id] += 1
        try:
            yield
        finally:
            self.running[trigger_id] -= 1
            if not self.running[trigger_id]:
                del self.running[trigger_id]
