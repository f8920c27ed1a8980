"""Options that every command understands, and how a command reads them.

`--config`, `--state-dir` and `--debug` may stand before or after the subcommand. The app gives
them to each command it loads; a command declares `ctx: typer.Context` and calls
`common_options(ctx)`. The one nearest to the command wins, then the environment, then the default.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

MANIFEST_VARIABLE = "HARN_ORCHESTRATOR_MANIFEST"
STATE_DIR_VARIABLE = "HARN_ORCHESTRATOR_STATE_DIR"
DEFAULT_MANIFEST = Path("harn.toml")
DEFAULT_STATE_DIR = Path(".harn/orchestrator")

EVERYWHERE = "Everyone's options, before or after the command"


@dataclass(slots=True)
class CommonOptions:
    """What was said on the command line; None where nothing was."""

    given_manifest: Path | None = None
    given_state_dir: Path | None = None
    debug: bool = False

    @property
    def manifest(self) -> Path:
        return _chosen(self.given_manifest, MANIFEST_VARIABLE, DEFAULT_MANIFEST)

    @property
    def state_dir(self) -> Path:
        """As the user wrote it, so possibly relative to the working directory."""
        return _chosen(self.given_state_dir, STATE_DIR_VARIABLE, DEFAULT_STATE_DIR)


def _chosen(given: Path | None, variable: str, default: Path) -> Path:
    if given is not None:
        return given
    from_environment = os.environ.get(variable)
    return Path(from_environment) if from_environment else default


def common_options(ctx: typer.Context) -> CommonOptions:
    """The options of this run, the same object for the app and each of its commands."""
    return ctx.find_root().ensure_object(CommonOptions)


def _remember_manifest(ctx: typer.Context, value: Path | None) -> None:
    if value is not None:
        common_options(ctx).given_manifest = value


def _remember_state_dir(ctx: typer.Context, value: Path | None) -> None:
    if value is not None:
        common_options(ctx).given_state_dir = value


def _remember_debug(ctx: typer.Context, value: bool) -> None:  # noqa: FBT001 - typer calls it
    if value:
        common_options(ctx).debug = True


def carrier(
    *,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "--manifest",
            metavar="PATH",
            help=f"The manifest ({DEFAULT_MANIFEST}, or what {MANIFEST_VARIABLE} says)",
            callback=_remember_manifest,
            rich_help_panel=EVERYWHERE,
        ),
    ] = None,
    state_dir: Annotated[
        Path | None,
        typer.Option(
            "--state-dir",
            metavar="PATH",
            help=f"Where the EventLog and the embedded server keep their files "
            f"({DEFAULT_STATE_DIR}, or what {STATE_DIR_VARIABLE} says)",
            callback=_remember_state_dir,
            rich_help_panel=EVERYWHERE,
        ),
    ] = None,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug",
            help="Log more, and show the traceback of an error",
            callback=_remember_debug,
            rich_help_panel=EVERYWHERE,
        ),
    ] = False,
) -> None:
    """Carries the common options; the app takes its parameters and never calls it."""


JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout")]

AdoptForeignOption = Annotated[
    bool,
    typer.Option(
        "--adopt-foreign",
        help="Also dispatch envelopes that Harn wrote; not while Harn's own pump runs",
    ),
]

ConsumeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--consume", metavar="QUEUE", help="Also handle the jobs of this queue; may be repeated"
    ),
]

TEMPORAL_PANEL = "Temporal service"

AddressOption = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="HOST:PORT",
        help="A Temporal service; without it Temporal's own configuration (TEMPORAL_ADDRESS, "
        "profiles) decides, else the embedded server of the state dir",
        rich_help_panel=TEMPORAL_PANEL,
    ),
]

ProfileOption = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="A profile of Temporal's configuration file",
        rich_help_panel=TEMPORAL_PANEL,
    ),
]
