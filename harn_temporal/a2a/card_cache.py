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


_Key = tuple[str, bool, str | None]


@dataclass(frozen=True)
class _Entry:
    card: AgentCard
    until: float


class CardCache:
    """Cards by authority, and by how they were read: with cleartext allowed, by whose token.

    An agent may show a card to one token only, so no binding gets what another one was shown.
    """

    def __init__(self, longest_s: float, monotonic: Monotonic = time.monotonic) -> None:
        self._longest_s = longest_s
        self._monotonic = monotonic
        self._entries: dict[_Key, _Entry] = {}

    def get(
        self, target: AgentTarget, *, allow_cleartext: bool, bearer_env: str | None
    ) -> AgentCard | None:
        entry = self._entries.get((target.authority, allow_cleartext, bearer_env))
        return entry.card if entry is not None and self._monotonic() < entry.until else None

    def put(
        self,
        target: AgentTarget,
        card: AgentCard,
        headers: httpx.Headers,
        *,
        allow_cleartext: bool,
        bearer_env: str | None,
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
            key = (target.authority, allow_cleartext, bearer_env)
            self._entries[key] = _Entry(card, now + fresh_s)

    def drop(self, target: AgentTarget) -> None:
        for key in [key for key in self._entries if key[0] == target.authority]:
            del self._entries[key]


def freshness_s(headers: httpx.Headers) -> float:
    """Seconds for which an answer may be kept; 0 where its headers do not allow it."""
    control = headers.get("cache-control", "").lower()
    if "no-store" in control or "no-cache" in control:
        return 0
    found = _MAX_AGE.search(control)
    if found:
        age = headers.get("age", "0").strip()
        return int(found[1]) - (int(age[:12]) if age.isascii() and age.isdigit() else 0)
    try:
        expires = parsedate_to_datetime(headers["expires"])
        return (expires - parsedate_to_datetime(headers["date"])).total_seconds()
    except (KeyError, ValueError, TypeError, OverflowError):
        return 0  # absent, no date, none of this world, or dates of different kinds
