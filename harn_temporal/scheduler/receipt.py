"""Why a job was claimed: returned to the consumer, and kept in its `job_claimed` record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harn_temporal.bindings import Priority
from harn_temporal.scheduler.candidates import PRIORITIES, promotion_deadline
from harn_temporal.scheduler.selection import Decision, Selection


@dataclass(frozen=True, slots=True)
class Receipt:
    """`promotion_deadline_at_ms` is null for high priority, which has none."""

    selected_at_ms: int
    enqueued_at_ms: int
    waited_ms: int
    """Never negative, even when the clocks of producer and store disagree."""
    priority: Priority
    decision: Decision
    promotion_deadline_at_ms: int | None
    fairness_key: str

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def receipt(selection: Selection, now_ms: int) -> Receipt:
    candidate = selection.candidate
    return Receipt(
        selected_at_ms=now_ms,
        enqueued_at_ms=candidate.enqueued_at_ms,
        waited_ms=max(0, now_ms - candidate.enqueued_at_ms),
        priority=PRIORITIES[candidate.rank],
        decision=selection.decision,
        promotion_deadline_at_ms=promotion_deadline(candidate),
        fairness_key=candidate.key,
    )
