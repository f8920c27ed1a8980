"""A ready job as selection sees it, and its place among others."""

from __future__ import annotations

from dataclasses import dataclass

from harn_temporal.bindings import Priority

PRIORITIES: tuple[Priority, ...] = ("high", "normal", "low")
RANKS = range(len(PRIORITIES))
"""A priority's rank is its place in PRIORITIES: high goes first."""

MINUTE_MS = 60_000
PROMOTED_AFTER_MS = (None, 15 * MINUTE_MS, 30 * MINUTE_MS)
"""By rank: the age from which a job goes before all that are not promoted."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """`due_at_ms` is when the job could first be claimed: its age counts from then.

    That is the time it was enqueued, or a later one for a job that was enqueued with a delay.
    `lane` is for who gives the candidates: the jobs of one lane and rank are in order of age.
    """

    job_id: int
    key: str
    rank: int
    enqueued_at_ms: int
    due_at_ms: int
    lane: int = 0

    @property
    def by_age(self) -> tuple[int, int]:
        return self.due_at_ms, self.job_id

    @property
    def by_rank(self) -> tuple[int, int, int]:
        return self.rank, self.due_at_ms, self.job_id

    def order(self, now_ms: int) -> tuple[bool, int, int, int]:
        """Sorts candidates into the order in which they are taken at `now_ms`."""
        return (not is_promoted(self, now_ms), *self.by_rank)


def promotion_deadline(candidate: Candidate) -> int | None:
    """When the job is promoted for its age; None for high priority, which has no deadline."""
    after_ms = PROMOTED_AFTER_MS[candidate.rank]
    return None if after_ms is None else candidate.due_at_ms + after_ms


def is_promoted(candidate: Candidate, now_ms: int) -> bool:
    deadline = promotion_deadline(candidate)
    return deadline is not None and deadline <= now_ms
