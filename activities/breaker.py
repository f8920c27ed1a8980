"""The breaker of predicates: one that keeps raising is not asked again for a while."""

from __future__ import annotations

from dataclasses import dataclass

from harn_temporal.clock import Clock, system_clock

THRESHOLD = 3
OPEN_MS = 5 * 60 * 1000


@dataclass
class _Circuit:
    failures: int = 0
    open_until_ms: int = 0


class PredicateBreaker:
    """Opens for five minutes when a predicate raised three times in a row.

    It is kept in the worker's process, for each binding key: another worker finds out by itself,
    and a restart closes it. When its time is over one evaluation is enough to open it again.
    """

    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._circuits: dict[str, _Circuit] = {}

    def is_open(self, binding_key: str) -> bool:
        circuit = self._circuits.get(binding_key)
        return circuit is not None and self._clock() < circuit.open_until_ms

    def succeeded(self, binding_key: str) -> None:
        self._circuits.pop(binding_key, None)

    def failed(self, binding_key: str) -> None:
        circuit = self._circuits.setdefault(binding_key, _Circuit())
        circuit.failures += 1
        if circuit.failures >= THRESHOLD:
            circuit.open_until_ms = self._clock() + OPEN_MS
