"""The gates of a binding as its manifest defines them. Keys are CEL over the event."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

GateKind = Literal["batch", "debounce", "rate_limit", "throttle", "singleton", "concurrency"]

GATE_ORDER: tuple[GateKind, ...] = (
    "batch",
    "debounce",
    "rate_limit",
    "throttle",
    "singleton",
    "concurrency",
)
"""The order in which a dispatch passes the gates of its binding."""


class Gate(BaseModel):
    model_config = ConfigDict(frozen=True)


class Concurrency(Gate):
    """At most `max` dispatches of a key run at once; others wait."""

    max: int
    key: str | None = None


class Throttle(Gate):
    """At most `max` dispatches of a key begin within any `period_ms`; others wait."""

    period_ms: int
    max: int
    key: str | None = None


class RateLimit(Gate):
    """At most `max` dispatches of a key begin within any `period_ms`; others are skipped."""

    period_ms: int
    max: int
    key: str | None = None


class Debounce(Gate):
    """The last of several begins when `period_ms` passed without another; others are skipped.

    At the latest `max_wait_ms` after the first of them, where that is given.
    """

    key: str
    period_ms: int
    max_wait_ms: int | None = None


class Singleton(Gate):
    """One dispatch of a key at a time; others are skipped."""

    key: str | None = None


class Batch(Gate):
    """Up to `size` events become one dispatch, at the latest `timeout_ms` after the first."""

    size: int
    timeout_ms: int
    key: str | None = None


class PriorityOrder(Gate):
    """Who waits for `concurrency` goes by the place of its key in `order`, the others last."""

    key: str
    order: tuple[str, ...]


AnyGate = Batch | Debounce | RateLimit | Throttle | Singleton | Concurrency


class Gates(BaseModel):
    """What a binding asks for. New fields need a default, as in Binding."""

    model_config = ConfigDict(frozen=True)

    batch: Batch | None = None
    debounce: Debounce | None = None
    rate_limit: RateLimit | None = None
    throttle: Throttle | None = None
    singleton: Singleton | None = None
    concurrency: Concurrency | None = None
    priority: PriorityOrder | None = None

    def in_order(self) -> list[tuple[GateKind, AnyGate]]:
        """Those that are there, in the order in which a dispatch passes them."""
        named = {kind: getattr(self, kind) for kind in GATE_ORDER}
        return [(kind, gate) for kind, gate in named.items() if gate is not None]
