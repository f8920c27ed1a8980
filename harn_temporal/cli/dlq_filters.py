"""The filters that the `dlq` commands share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from harn_temporal.inspection.dead_letter_selection import Selection


@dataclass(frozen=True, slots=True)
class DeadLetterFilters:
    trigger: Annotated[
        str | None, typer.Option("--trigger", metavar="ID", help="Only of this trigger")
    ] = None
    provider: Annotated[
        str | None, typer.Option("--provider", metavar="NAME", help="Only of this provider")
    ] = None
    error_class: Annotated[
        str | None,
        typer.Option("--error-class", metavar="CLASS", help="Only this class: handler_panic, …"),
    ] = None
    tenant: Annotated[
        str | None, typer.Option("--tenant", metavar="ID", help="Only of this tenant")
    ] = None
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="AGE", help="Only dead for longer: 30m, 2h, 7d"),
    ] = None
    newer_than: Annotated[
        str | None, typer.Option("--newer-than", metavar="AGE", help="Only dead for less long")
    ] = None

    def selection(self, *, state: str | None = "pending") -> Selection:
        """What the options say. Raises UsageError for an age that is no duration."""
        from harn_temporal.durations import parse_duration
        from harn_temporal.inspection.dead_letter_selection import Selection

        return Selection(
            trigger_id=self.trigger,
            provider=self.provider,
            error_class=self.error_class,
            tenant_id=self.tenant,
            state=state,
            older_than_ms=None if self.older_than is None else parse_duration(self.older_than),
            newer_than_ms=None if self.newer_than is None else parse_duration(self.newer_than),
        )
