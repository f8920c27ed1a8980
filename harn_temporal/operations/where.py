"""`--where`: a CEL expression over an event, its binding, and how far its dispatch has come.

The names are those of Harn's filters, so that one written for Harn in CEL's spelling holds here.
"""

from __future__ import annotations

from typing import Any

from harn_temporal.errors import ExpressionError
from harn_temporal.expressions import CelExpression, compile_cel
from harn_temporal.operations.progress import Progress

NAMES = ("event", "binding", "attempt", "outcome", "audit")


class Where:
    """Raises ExpressionError for an expression that is wrong, as soon as it is made."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._expression: CelExpression = compile_cel(source, NAMES)

    @property
    def reads_event(self) -> bool:
        """Whether it asks for something that only the event itself tells."""
        return "event" in self._expression.names

    def holds(self, event: dict[str, Any], binding: dict[str, Any], progress: Progress) -> bool:
        """`event` holds its id at least. Raises ExpressionError where that fails, naming it."""
        try:
            return self._expression.holds_in(_scope(event, binding, progress))
        except ExpressionError as error:
            raise ExpressionError(f"event {event.get('id')}: {error}; nothing was done") from error


def _scope(
    event: dict[str, Any], binding: dict[str, Any], progress: Progress
) -> dict[str, dict[str, Any]]:
    payload = event.get("provider_payload")
    raw = payload.get("raw") if isinstance(payload, dict) else None
    return {
        "event": {**event, "payload": raw, "tenant": event.get("tenant_id")},
        "binding": binding,
        "attempt": {
            "status": progress.status,
            "attempt": progress.attempts,
            "count": progress.attempts,
            "error": progress.error,
            "started_at": progress.started_at,
            "completed_at": progress.completed_at,
            "terminal": progress.terminal,
            "cancellable": progress.cancellable,
            "cancel_requested": progress.cancel_requested,
        },
        "outcome": {
            "status": progress.status,
            "attempt_count": progress.attempts,
            "error": progress.error,
            "terminal": progress.terminal,
        },
        "audit": {"cancel_requested": progress.cancel_requested},
    }
