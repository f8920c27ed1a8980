"""How long and how much an agent may take. Values, so that tests can make them small."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True)
class HopLimits:
    """Seconds and bytes. Each time bounds a whole exchange, from connecting to the last byte.

    A read timeout alone would not do: a peer that sends a byte a second outlasts it for ever.
    """

    connect_s: float = 10.0
    card_s: float = 15.0
    """For one request of an agent card, its redirects included."""
    control_s: float = 30.0
    """For asking about a task, or cancelling it."""
    card_bytes: int = MIB
    reply_bytes: int = 8 * MIB
    redirects: int = 5
    cache_s: float = 300.0
    """At most so long a card is kept, whatever its cache headers allow."""
