"""A queue in memory: what the store gives by index, from a list. For simulations and proofs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from harn_temporal.scheduler import selection as selecting
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
        self._given_from = ""
        self._given_to: str | None = None

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
        last, given_to = self._last_key or "", self._given_to
        turn = _turn_after(last)
        for key in sorted((key for key, credit in self.credits.items() if credit > 0), key=turn):
            if given_to is None or (given_to != last and turn(key) <= turn(given_to)):
                yield key

    def refill(self, policy: Policy, allowed: Allowed) -> None:
        given_to = self._given_to
        if given_to is None:
            self.rounds += 1
            self._given_from = self._last_key or ""
        turn = _turn_after(self._given_from)
        keys = sorted({job.key for job in self.ready}, key=turn)
        if given_to is not None:
            keys = [key for key in keys if turn(key) > turn(given_to)]
        now = keys[: selecting.GRANTED_AT_ONCE]
        self._given_to = None if now == keys else now[-1]
        for key in now:
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


def _turn_after(last: str) -> Callable[[str], tuple[bool, str]]:
    """Sorts keys into the order of their turns after the key `last`, which comes at the end."""
    return lambda key: (key <= last, key)
