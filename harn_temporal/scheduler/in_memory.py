"""A queue in memory: what the store gives by index, from a list. For simulations and proofs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from harn_temporal.scheduler.candidates import Candidate
from harn_temporal.scheduler.policy import Policy
from harn_temporal.scheduler.selection import Allowed, ReadyJobs, Selection


class MemoryJobs(ReadyJobs):
    def __init__(self, ready: Iterable[Candidate] = ()) -> None:
        self.ready = list(ready)
        self.claims: Counter[str] = Counter()
        self.credits: Counter[str] = Counter()
        self.rounds = 0
        self.starvation_promotions = 0
        self._last_key: str | None = None

    @property
    def last_key(self) -> str | None:
        return self._last_key

    def oldest(self, rank: int) -> list[Candidate]:
        found = [job for job in self.ready if job.rank == rank]
        return sorted(found, key=lambda job: job.by_age)

    def heads(self, key: str) -> list[Candidate]:
        return [job for job in self.ready if job.key == key]

    def in_flight(self, key: str) -> int:
        return self.claims[key]

    def credited(self) -> Iterator[str]:
        keys = sorted(key for key, credit in self.credits.items() if credit > 0)
        last = self._last_key
        if last is None:
            return iter(keys)
        return iter([*(k for k in keys if k > last), *(k for k in keys if k <= last)])

    def refill(self, policy: Policy, allowed: Allowed) -> None:
        self.rounds += 1
        for key in {job.key for job in self.ready}:
            if allowed(key):
                self.credits[key] = policy.grant(key)

    def take(self, selection: Selection) -> None:
        """Apply a selection: the job is in flight."""
        candidate = selection.candidate
        self.ready.remove(candidate)
        self.claims[candidate.key] += 1
        self.starvation_promotions += selection.starved
        if selection.spends:
            self.credits[candidate.key] -= 1
            self._last_key = candidate.key
