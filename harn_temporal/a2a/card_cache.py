"""Resolved agent cards, for as long as their cache headers allow."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import httpx

from harn_temporal.a2a.cards import AgentCard
from harn_temporal.a2a.target import AgentTarget

Monotonic = Callable[[], float]

SIZE = 1024
_MAX_AGE = re.compile(r"max-age\s*=\s*\"?(\d{1,10})\"?")


@dataclass(frozen=True)
class _Entry:
    card: AgentCard
    until: float


class CardCache:
    """Cards by authority and by whether cleartext was allowed when they were read."""

    def __init__(self, longest_s: float, monotonic: Monotonic = time.monotonic) -> None:
        self._longest_s = longest_s
        self._monotonic = monotonic
        self._entries: dict[tuple[str, bool], _Entry] = {}

    def get(self, target: AgentTarget, *, allow_cleartext: bool) -> AgentCard | None:
        entry = self._entries.get((target.authority, allow_cleartext))
        return entry.card if entry is not None and self._monotonic() < entry.until else None

    def put(
        self, target: AgentTarget, card: AgentCard, headers: httpx.Headers, *, allow_cleartext: bool
    ) -> None:
        fresh_s = min(freshness_s(headers), self._longest_s)
        if fresh_s <= 0:
            return
        now = self._monotonic()
        if len(self._entries) >= SIZE:
            self._entries = {
                key: entry for key, entry in self._entries.items() if now < entry.until
            }
        if len(self._entries) < SIZE:
            self._entries[target.authority, allow_cleartext] = _Entry(card, now + fresh_s)

    def drop(self, target: AgentTarget) -> None:
        for allow_cleartext in (False, True):
            self._entries.pop((target.authority, allow_cleartext), None)


def freshness_s(headers: httpx.Headers) -> float:
    """Seconds for which an answer may be kept; 0 where its headers do not allow it."""
    control = headers.get("cache-control", "").lower()
    if "no-store" in control or "no-cache" in control:
        return 0
    found = _MAX_AGE.search(control)
    if found:
        age = headers.get("age", "0").strip()
        return int(found[1]) - (int(age) if age.isascii() and age.isdigit() else 0)
    try:
        expires = parsedate_to_datetime(headers["expires"])
        return (expires - parsedate_to_datetime(headers["date"])).total_seconds()
    except (KeyError, ValueError, TypeError):  # absent, no date, or dates of different kinds
        return 0
