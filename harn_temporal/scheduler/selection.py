"""One selection. What it asks for is what an index can give, whatever the length of a queue."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from harn_temporal.scheduler.candidates import RANKS, Candidate
from harn_temporal.scheduler.policy import Policy

GRANTED_AT_ONCE = 1000
"""Keys that get the credits of a round together. One round of a million would take seconds."""

Decision = Literal["priority", "fair-share", "starvation-deadline"]
Allowed = Callable[[str], bool]


class ReadyJobs(Protocol):
    """A queue at a moment: what is ready, what is in flight, and the balances of its keys."""

    @property
    def last_key(self) -> str | None:
        """The key that the last selection by credit took."""

    def oldest(self, rank: int) -> Iterable[Candidate]:
        """By age: of each key the oldest ready job of a rank; more jobs of a key may follow."""

    def heads(self, key: str) -> Iterable[Candidate]:
        """Of a key the oldest ready job of each rank; more may be among them."""

    def in_flight(self, key: str) -> int: ...

    def credited(self) -> Iterable[str]:
        """The keys with a positive balance in sorted order, beginning after `last_key`.

        They wrap round up to `last_key` itself; while a round is being given out, they end where
        it has come to. Keys without ready jobs may be among them.
        """

    def refill(self, policy: Policy, allowed: Allowed) -> None:
        """Give the credits of one round to the allowed keys that have ready jobs.

        To GRANTED_AT_ONCE keys with ready jobs, in the order of their turns; the next time to
        those after them, until all have been passed. What comes then is the next round.
        """


@dataclass(frozen=True, slots=True)
class Selection:
    """`starved`: the starvation age chose, which costs no credit. `spends`: it costs one."""

    candidate: Candidate
    decision: Decision
    starved: bool = False
    spends: bool = False


def select(
    jobs: ReadyJobs, policy: Policy, now_ms: int, excluded: Collection[str] = ()
) -> Selection | None:
    """The next job to be claimed; None where no key is eligible.

    Keys at their cap are not eligible, nor are those in `excluded`. Who calls this applies the
    selection to `jobs` before the next one.
    """

    def allowed(key: str) -> bool:
        cap = policy.max_concurrent_per_key
        return key not in excluded and (cap == 0 or jobs.in_flight(key) < cap)

    if policy.strategy == "fifo":
        return _first(_oldest_of_each_rank(jobs, allowed), now_ms, "priority")
    return _fair_share(jobs, policy, now_ms, allowed)


def _fair_share(jobs: ReadyJobs, policy: Policy, now_ms: int, allowed: Allowed) -> Selection | None:
    if policy.starvation_age_ms:
        heads = _oldest_of_each_rank(jobs, allowed)
        oldest = min(heads, key=lambda head: head.by_age, default=None)
        if oldest is None:
            return None
        if now_ms - oldest.due_at_ms >= policy.starvation_age_ms:
            return Selection(oldest, "starvation-deadline", starved=True)
    chosen = _by_credit(jobs, now_ms, allowed)
    if chosen is None and _oldest_of_each_rank(jobs, allowed):
        while chosen is None:  # some key is eligible: its turn comes in this round or the next
            jobs.refill(policy, allowed)
            chosen = _by_credit(jobs, now_ms, allowed)
    return chosen


def _by_credit(jobs: ReadyJobs, now_ms: int, allowed: Allowed) -> Selection | None:
    for key in jobs.credited():
        if allowed(key):
            found = _first(jobs.heads(key), now_ms, "fair-share")
            if found is not None:
                return Selection(found.candidate, found.decision, spends=True)
    return None


def _first(heads: Iterable[Candidate], now_ms: int, decision: Decision) -> Selection | None:
    """The first by rank and promotion. It was age where promotion made another one first."""
    found = list(heads)
    if not found:
        return None
    chosen = min(found, key=lambda head: head.order(now_ms))
    unpromoted = min(found, key=lambda head: head.by_rank)
    return Selection(chosen, decision if chosen == unpromoted else "starvation-deadline")


def _oldest_of_each_rank(jobs: ReadyJobs, allowed: Allowed) -> list[Candidate]:
    """Enough to choose from: within a rank, age decides alone, also who is promoted."""
    firsts = (
        next((head for head in jobs.oldest(rank) if allowed(head.key)), None) for rank in RANKS
    )
    return [head for head in firsts if head is not None]
