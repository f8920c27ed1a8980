"""What became of the events of each binding, as the outbox tells."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from harn_temporal.clock import rfc3339
from harn_temporal.eventlog.outbox import ENDED, UNDER_WAY, OutboxDispatch, OutboxFigures


@dataclass(slots=True)
class Figures:
    """Dispatches of one binding by the status they have now, and the attempts they took."""

    dispatches: int = 0
    attempts: int = 0
    by_status: dict[str, int] = field(default_factory=dict)
    last_at_ms: int | None = None

    @property
    def under_way(self) -> int:
        return sum(self.by_status.get(status, 0) for status in UNDER_WAY)

    def to_json(self) -> dict[str, Any]:
        return {
            "dispatches": self.dispatches,
            "attempts": self.attempts,
            **{status: self.by_status.get(status, 0) for status in (*UNDER_WAY, *ENDED)},
            "last_at": None if self.last_at_ms is None else rfc3339(self.last_at_ms),
        }


def figures_by_binding(found: Iterable[OutboxFigures]) -> dict[str, Figures]:
    """By binding key."""
    by_binding: dict[str, Figures] = {}
    for each in found:
        figures = by_binding.setdefault(each.binding_key, Figures())
        figures.dispatches += each.dispatches
        figures.attempts += each.attempts
        figures.by_status[each.status] = each.dispatches
        figures.last_at_ms = each.last_at_ms
    return by_binding


def dispatch_json(dispatch: OutboxDispatch) -> dict[str, Any]:
    return {
        "event_id": dispatch.event_id,
        "binding_key": dispatch.binding_key,
        "tenant_id": dispatch.tenant_id or None,
        "status": dispatch.status,
        "attempts": dispatch.attempts,
        "at": rfc3339(dispatch.at_ms),
    }
