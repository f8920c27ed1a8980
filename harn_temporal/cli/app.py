"""The command line's root: which commands there are, and from where each is imported when used.

`--help` imports no command module: `temporalio`, `cel` and pydantic models take most of a second.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from harn_temporal.cli.options import carrier


@dataclass(frozen=True, slots=True)
class Source:
    """Where a command comes from: `module:attribute`, a function or a `typer.Typer`."""

    target: str
    help: str


COMMANDS: dict[str, Source] = {
    "up": Source(
        "harn_temporal.cli.up:up",
        "Run everything on this machine: embedded server, Web UI, worker and pump",
    ),
    "worker": Source(
        "harn_temporal.cli.worker:worker", "Run a worker for the manifest until it is told to stop"
    ),
    "fire": Source("harn_temporal.cli.fire:fire", "Ingest one event for one trigger"),
    "ingest": Source(
        "harn_temporal.cli.ingest:ingest", "Ingest one event for every trigger that matches"
    ),
    "queue": Source("harn_temporal.cli.queue:app", "Worker queues: enqueue, drain, look after"),
    "gate": Source("harn_temporal.cli.gate:app", "Flow-control gates: holders and waiters"),
    "trigger": Source("harn_temporal.cli.trigger:app", "Triggers with version, state and figures"),
    "dlq": Source("harn_temporal.cli.dlq:app", "Dead letters: dispatches whose retries ran out"),
    "log": Source("harn_temporal.cli.log:app", "The EventLog: read, follow, verify, rebuild"),
    "a2a": Source(
        "harn_temporal.cli.a2a:app", "Remote agents: what they offer, and what is refused"
    ),
    "recover": Source(
        "harn_temporal.cli.recover:recover", "Envelopes that no dispatch was started for"
    ),
    "graph": Source("harn_temporal.cli.graph:graph", "The action graph of an event"),
    "inspect": Source("harn_temporal.cli.inspect:inspect", "The state of a store in one view"),
    "metrics": Source(
        "harn_temporal.cli.metrics:metrics", "The Prometheus exposition, read from the store"
    ),
    "doctor": Source(
        "harn_temporal.cli.doctor:doctor", "What is wrong with the set-up, and what to do about it"
    ),
}


class LazyGroup(TyperGroup):
    """Lists its commands from the table above, and imports the one that is called."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the base class's shape
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:  # noqa: ARG002
        source = COMMANDS.get(cmd_name)
        return TyperCommand(cmd_name, help=source.help) if source else None

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        self.commands = {name: TyperCommand(name) for name in COMMANDS}  # for "did you mean"
        name, command, rest = super().resolve_command(ctx, args)
        return name, (load_command(name) if name and command else command), rest


def load_command(name: str) -> Any:
    """The command `name`, imported, with the options that every command understands."""
    module_name, _, attribute = COMMANDS[name].target.partition(":")
    loaded = getattr(importlib.import_module(module_name), attribute)
    if not isinstance(loaded, typer.Typer):
        single = typer.Typer(add_completion=False)
        single.command(name)(loaded)
        loaded = single
    command = typer.main.get_command(loaded)
    command.name = name
    _add_common_options(command)
    return command


def _add_common_options(command: Any) -> None:
    app = typer.Typer(add_completion=False)
    app.command()(carrier)
    options = typer.main.get_command(app).params
    for option in options:
        option.expose_value = False
    command.params.extend(options)
    for child in getattr(command, "commands", {}).values():
        _add_common_options(child)


def _print_version(value: bool) -> None:  # noqa: FBT001 - typer calls it
    if value:
        typer.echo(f"harn-temporal {version('harn-temporal')}")
        raise typer.Exit


def _root(
    *,
    show_version: Annotated[
        bool,
        typer.Option("--version", help="Print the version", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Durable trigger dispatch on Temporal, with the EventLog as its record.

    Example: harn-temporal up --config harn.toml
    """


def build_app() -> Any:
    """The root command. Call its `main(args, obj=CommonOptions(), standalone_mode=False)`."""
    app = typer.Typer(cls=LazyGroup, add_completion=False, no_args_is_help=True)
    app.callback()(_root)
    command = typer.main.get_command(app)
    options = len(command.params)
    _add_common_options(command)
    command.params.sort(key=lambda _: options)
    return command
