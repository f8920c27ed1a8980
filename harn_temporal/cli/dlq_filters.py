"""The filters that the `dlq` commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from harn_temporal.inspection.dead_letters import Selection

OnlyTriggerOption = Annotated[
    str | None, typer.Option("--trigger", metavar="ID", help="Only of this trigger")
]
ProviderOption = Annotated[
    str | None, typer.Option("--provider", metavar="NAME", help="Only of this provider")
]
ErrorClassOption = Annotated[
    str | None,
    typer.Option("--error-class", metavar="CLASS", help="Only this class: handler_panic, …"),
]
TenantOption = Annotated[
    str | None, typer.Option("--tenant", metavar="ID", help="Only of this tenant")
]
OlderThanOption = Annotated[
    str | None,
    typer.Option("--older-than", metavar="AGE", help="Only dead for longer: 30m, 2h, 7d"),
]
NewerThanOption = Annotated[
    str | None, typer.Option("--newer-than", metavar="AGE", help="Only dead for less long")
]


def selection(
    *,
    trigger: str | None,
    provider: str | None,
    error_class: str | None,
    tenant: str | None,
    older_than: str | None,
    newer_than: str | None,
    state: str | None = "pending",
) -> Selection:
    """What the options say. Raises UsageError for an age that is no duration."""
    from harn_temporal.durations import parse_duration
    from harn_temporal.inspection.dead_letters import Selection

    return Selection(
        trigger_id=trigger,
        provider=provider,
        error_class=error_class,
        tenant_id=tenant,
        state=state,
        older_than_ms=None if older_than is None else parse_duration(older_than),
        newer_than_ms=None if newer_than is None else parse_duration(newer_than),
    )
