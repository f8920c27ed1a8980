"""Deliveries that this process dropped because their event was known already."""

from __future__ import annotations

from collections import Counter
from typing import Literal

DedupeReason = Literal["inbox_duplicate", "dispatch_exists"]
"""A live claim on the dedupe key held; or the pump found that the dispatch had begun or ended."""

_DROPPED: Counter[tuple[str, DedupeReason]] = Counter()


def count_dropped(trigger_id: str, reason: DedupeReason) -> None:
    _DROPPED[trigger_id, reason] += 1


def dropped() -> dict[tuple[str, DedupeReason], int]:
    """Since the process began, by trigger id and reason."""
    return dict(_DROPPED)
