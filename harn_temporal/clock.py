"""The clock is a value that is passed in, so that tests can hold it at an exact edge."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], int]
"""Returns the current time in milliseconds since the Unix epoch."""


def system_clock() -> int:
    return time.time_ns() // 1_000_000


def rfc3339(ms: int) -> str:
    """Milliseconds since the epoch as RFC 3339 in UTC, with `Z` and three fractional digits."""
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"
