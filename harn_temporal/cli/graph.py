"""`harn-temporal graph`: what became of an event, as a graph."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from harn_temporal.cli.options import JsonOption, common_options

if TYPE_CHECKING:
    from rich.tree import Tree

    from harn_temporal.inspection.graph import EventGraph
    from harn_temporal.inspection.graph_views import Branch


class Format(StrEnum):
    TERMINAL = "terminal"
    MERMAID = "mermaid"
    JSON = "json"


def graph(
    ctx: typer.Context,
    event_id: Annotated[str, typer.Argument(metavar="EVENT_ID", help="As `fire` prints it")],
    *,
    form: Annotated[
        Format, typer.Option("--format", help="How to draw it", show_default=True)
    ] = Format.TERMINAL,
    as_json: JsonOption = False,
) -> None:
    """Show the action graph of an event: its dispatches, attempts, retries and replays.

    Example: harn-temporal graph trigger_evt_01994b2c-7f6e-7c3a-9d51-0a4be2f6c1d7 --format mermaid
    """
    from harn_temporal.cli.output import print_json
    from harn_temporal.cli.reading import reading
    from harn_temporal.eventlog.log import EventLog
    from harn_temporal.inspection.graph import event_graph

    async def read(log: EventLog) -> EventGraph:
        return await event_graph(log, event_id)

    found = reading(common_options(ctx), read)
    if as_json or form is Format.JSON:
        print_json(found.to_json())
    elif form is Format.MERMAID:
        _print_mermaid(found)
    else:
        _print_trees(found)


def _print_mermaid(found: EventGraph) -> None:
    import sys

    from harn_temporal.inspection.graph_views import mermaid

    encoding = sys.stdout.encoding or "ascii"
    sys.stdout.write(mermaid(found).encode(encoding, "replace").decode(encoding))


def _print_trees(found: EventGraph) -> None:
    from rich.text import Text
    from rich.tree import Tree

    from harn_temporal.cli.tables import console_for_people, printable
    from harn_temporal.inspection.graph_views import tree

    console = console_for_people()
    root = Tree(Text(printable(f"event {found.event_id}"), style="bold"))
    for dispatch in found.dispatches.values():
        name = dispatch.workflow_id or "Harn's dispatches"
        replay = "" if dispatch.replay is None else f" (replay {dispatch.replay})"
        below = root.add(Text(printable(f"{name}{replay}"), style="dim"))
        for branch in tree(dispatch):
            _add(below, branch)
    console.print(root)


def _add(parent: Tree, branch: Branch) -> None:
    from rich.text import Text

    from harn_temporal.cli.tables import printable
    from harn_temporal.inspection.graph_views import error_of, title

    styles = {"completed": "green", "failed": "red", "queued": "red", "cancelled": "yellow"}
    text = Text(printable(title(branch.node)), style=styles.get(str(branch.node.get("status")), ""))
    if branch.edge:
        text = Text(f"{printable(branch.edge)}: ", style="dim") + text
    error = error_of(branch.node)
    if error:
        text.append(f"\n{printable(error)}", style="red")
    below = parent.add(text)
    for each in branch.branches:
        _add(below, each)
