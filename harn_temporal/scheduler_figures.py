"""What this process has selected from worker queues: the scheduler's counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from harn_temporal.queue.models import Claims

MOST_SERIES = 10_000
"""Of each counter. A process that has met more keys forgets those it met first."""


class Series(NamedTuple):
    queue: str
    fairness_dimension: str
    fairness_key: str


class SchedulerFigures:
    """Counters of `harn_scheduler_…_total`, by queue, dimension and key."""

    def __init__(self) -> None:
        self._selections: Counter[Series] = Counter()
        self._deferrals: Counter[Series] = Counter()
        self._promotions: Counter[Series] = Counter()

    @property
    def selections(self) -> Mapping[Series, int]:
        return self._selections

    @property
    def deferrals(self) -> Mapping[Series, int]:
        return self._deferrals

    @property
    def starvation_promotions(self) -> Mapping[Series, int]:
        return self._promotions

    def count(self, queue: str, dimension: str, claims: Claims) -> None:
        """Count what one selection claimed and deferred."""
        for claim in claims.claims:
            series = Series(queue, dimension, claim.scheduling.fairness_key)
            _add(self._selections, series)
            if claim.scheduling.decision == "starvation-deadline":
                _add(self._promotions, series)
        for key in claims.deferred_keys:
            _add(self._deferrals, Series(queue, dimension, key))


def _add(counter: Counter[Series], series: Series) -> None:
    if series not in counter and len(counter) >= MOST_SERIES:
        del counter[next(iter(counter))]
    counter[series] += 1
