"""The clock is a value that is passed in, so that tests can hold it at an exact edge."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], int]
"""Returns the current time in milliseconds since the Unix epoch."""


_EARLIEST_MS = -62_135_596_800_000
_LATEST_MS = 253_402_300_799_999


def system_clock() -> int:
    return time.time_ns() // 1_000_000


def rfc3339(ms: int) -> str:
    """Milliseconds since the epoch as RFC 3339 in UTC, with `Z` and three fractional digits.

    A moment outside the years 1 to 9999, which others may have recorded, is the nearest inside.
    """
    ms = min(max(ms, _EARLIEST_MS), _LATEST_MS)
    moment = datetime.fromtimestamp(ms // 1000, UTC).replace(tzinfo=None)
    return f"{moment.isoformat()}.{ms % 1000:03d}Z"
