"""The header Retry-After: seconds, or a date."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime

from harn_temporal.clock import Clock

LONGEST_MS = 30 * 86_400_000
"""Nobody may park a dispatch for longer than this: 30 days."""


def retry_after_ms(value: str | None, clock: Clock) -> int | None:
    """Milliseconds to wait from now on, or None where the header says nothing that can be read."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(int(text[:12]) * 1000, LONGEST_MS)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0, min(int(moment.timestamp() * 1000) - clock(), LONGEST_MS))
