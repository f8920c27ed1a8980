"""A clock that stands still until it is told to go on."""

from __future__ import annotations

from harn_temporal.clock import rfc3339
from harn_temporal.durations import parse_duration

START_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z"""


class FakeClock:
    """Called, it gives milliseconds since the epoch."""

    def __init__(self, start_ms: int = START_MS) -> None:
        self._now_ms = start_ms

    def __call__(self) -> int:
        return self._now_ms

    def __repr__(self) -> str:
        return f"<FakeClock {rfc3339(self._now_ms)}>"

    def advance(self, duration: str | int) -> None:
        """By milliseconds, or by a duration such as `"5m"`. Time never goes back."""
        ms = duration if isinstance(duration, int) else parse_duration(duration)
        if ms < 0:
            raise ValueError(f"a clock goes forward only, not by {ms} ms")
        self._now_ms += ms
