"""`harn-temporal trigger`: the bindings of a store, and what became of their events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from harn_temporal.cli import trigger_operations
from harn_temporal.cli.options import JsonOption, common_options

if TYPE_CHECKING:
    from harn_temporal.eventlog.outbox import OutboxDispatch
    from harn_temporal.inspection.bindings import BindingView, TriggerView

LATEST = 10

app = typer.Typer(no_args_is_help=True, help="Triggers with version, state and figures.")


@app.command("ls")
def list_triggers(
    ctx: typer.Context,
    *,
    every_state: Annotated[
        bool, typer.Option("--all", help="Also versions that are no longer in use")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the triggers that workers have registered in this store.

    Example: harn-temporal trigger ls --all
    """
    from harn_temporal.cli.output import note, print_json
    from harn_temporal.cli.reading import reading
    from harn_temporal.inspection.bindings import bindings

    found = reading(common_options(ctx), bindings)
    shown = [view for view in found if every_state or view.binding.state != "terminated"]
    if as_json:
        print_json({"triggers": [view.to_json() for view in shown]})
    elif shown:
        _print_bindings(shown)
    else:
        note("No triggers are registered yet. `harn-temporal up` registers those of the manifest.")


@app.command("show")
def show_trigger(
    ctx: typer.Context,
    wanted: Annotated[str, typer.Argument(metavar="ID", help="A trigger's id, or id@vN")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Show a trigger: its versions, its definition and its latest dispatches.

    Example: harn-temporal trigger show github-new-issue
    """
    from harn_temporal.cli.output import print_json
    from harn_temporal.cli.reading import reading
    from harn_temporal.eventlog.log import EventLog
    from harn_temporal.inspection.bindings import trigger

    async def read(log: EventLog) -> TriggerView:
        return await trigger(log, wanted, latest=LATEST)

    view = reading(common_options(ctx), read)
    if as_json:
        print_json(view.to_json())
    else:
        _print_trigger(view)


def _print_bindings(views: list[BindingView]) -> None:
    from harn_temporal.cli.tables import Column, print_table

    columns = [
        Column("binding"),
        Column("state"),
        Column("package", rank=5),
        Column("source", rank=3),
        Column("handler", rank=6),
        Column("dispatches", rank=1, right=True),
        Column("under way", rank=4, right=True),
        Column("dead", rank=2, right=True),
        Column("last", rank=7),
    ]
    rows = [
        [
            view.binding.binding_key,
            view.binding.state,
            view.binding.package or "-",
            f"{view.binding.provider} {view.binding.kind}",
            view.binding.handler_kind,
            str(view.figures.dispatches),
            str(view.figures.under_way),
            str(view.figures.by_status.get("dlq", 0)),
            _when(view.figures.last_at_ms),
        ]
        for view in views
    ]
    print_table(columns, rows)


def _print_trigger(view: TriggerView) -> None:
    from harn_temporal.cli.tables import console_for_people

    _print_bindings(list(view.versions))
    console = console_for_people()
    if view.definition is not None:
        console.print("\ndefinition")
        console.print_json(data=view.definition, ensure_ascii=True)
    if view.latest:
        console.print()
        _print_dispatches(list(view.latest))


def _print_dispatches(dispatches: list[OutboxDispatch]) -> None:
    from harn_temporal.cli.tables import Column, print_table

    columns = [
        Column("event"),
        Column("version", rank=3),
        Column("tenant", rank=4),
        Column("status"),
        Column("attempts", rank=1, right=True),
        Column("at", rank=2),
    ]
    rows = [
        [
            dispatch.event_id,
            dispatch.binding_key,
            dispatch.tenant_id or "-",
            dispatch.status,
            str(dispatch.attempts),
            _when(dispatch.at_ms),
        ]
        for dispatch in dispatches
    ]
    print_table(columns, rows)


def _when(ms: int | None) -> str:
    from harn_temporal.clock import rfc3339

    return "-" if ms is None else rfc3339(ms)


app.command("cancel")(trigger_operations.cancel)
app.command("replay")(trigger_operations.replay)
