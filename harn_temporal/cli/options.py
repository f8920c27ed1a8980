"""Options that every command understands, and how a command reads them.

`--config`, `--state-dir` and `--debug` may stand before or after the subcommand. The app gives
them to each command it loads; a command declares `ctx: typer.Context` and calls
`common_options(ctx)`. The one nearest to the command wins, then the environment, then the default.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from harn_temporal.errors import UsageError

MANIFEST_VARIABLE = "HARN_ORCHESTRATOR_MANIFEST"
STATE_DIR_VARIABLE = "HARN_ORCHESTRATOR_STATE_DIR"
LOG_FORMAT_VARIABLE = "HARN_ORCHESTRATOR_LOG_FORMAT"
LOG_LEVEL_VARIABLE = "HARN_ORCHESTRATOR_LOG_LEVEL"
LOG_FORMATS = ("text", "json")
LOG_LEVELS = ("debug", "info", "warning", "error")
DEFAULT_MANIFEST = Path("harn.toml")
DEFAULT_STATE_DIR = Path(".harn/orchestrator")

EVERYWHERE = "Everyone's options, before or after the command"


@dataclass(slots=True)
class CommonOptions:
    """What was said on the command line; None where nothing was."""

    given_manifest: Path | None = None
    given_state_dir: Path | None = None
    debug: bool = False
    given_log_format: str | None = None
    given_log_level: str | None = None

    @property
    def log_format(self) -> str:
        """`text` or `json`. Raises UsageError for another word in the environment."""
        found = _word(self.given_log_format, LOG_FORMAT_VARIABLE, (*LOG_FORMATS, "pretty"))
        return "json" if found == "json" else "text"

    @property
    def log_level(self) -> str | None:
        """One of LOG_LEVELS; None where nobody said. Raises UsageError as `log_format` does."""
        return _word(self.given_log_level, LOG_LEVEL_VARIABLE, LOG_LEVELS)

    def check_words(self) -> None:
        """Raises UsageError as `log_format` and `log_level` do."""
        _ = self.log_format, self.log_level

    @property
    def manifest(self) -> Path:
        return _chosen(self.given_manifest, MANIFEST_VARIABLE, DEFAULT_MANIFEST)

    @property
    def named_state_dir(self) -> Path:
        """As the user wrote it, so possibly relative to the working directory."""
        return _chosen(self.given_state_dir, STATE_DIR_VARIABLE, DEFAULT_STATE_DIR)

    @property
    def state_dir(self) -> Path:
        """As `named_state_dir`. Raises UsageError where a file is in its place."""
        found = self.named_state_dir
        for place in (found, *found.parents):
            if place.is_file():
                raise UsageError(
                    f"the state directory {found} cannot be: {place} is a file; name a directory "
                    f"with --state-dir or {STATE_DIR_VARIABLE}"
                )
        return found


def _word(given: str | None, variable: str, allowed: Sequence[str]) -> str | None:
    found = given or os.environ.get(variable) or None
    if found is not None and found not in allowed:
        raise UsageError(f"{variable} is {found!r}; it is one of {', '.join(allowed)}")
    return found


def _chosen(given: Path | None, variable: str, default: Path) -> Path:
    if given is not None:
        return given
    from_environment = os.environ.get(variable)
    return Path(from_environment) if from_environment else default


def common_options(ctx: typer.Context) -> CommonOptions:
    """The options of this run, the same object for the app and each of its commands.

    Raises UsageError for a word in the environment that is none, also where the command has no
    use for it: what is mistyped there is found by the first command, not by the first worker.
    """
    options = _options(ctx)
    options.check_words()
    return options


def _options(ctx: typer.Context) -> CommonOptions:
    return ctx.find_root().ensure_object(CommonOptions)


def _remember_manifest(ctx: typer.Context, value: Path | None) -> None:
    if value is not None:
        _options(ctx).given_manifest = value


def _remember_state_dir(ctx: typer.Context, value: Path | None) -> None:
    if value is not None:
        _options(ctx).given_state_dir = value


def _remember_debug(ctx: typer.Context, value: bool) -> None:  # noqa: FBT001 - typer calls it
    if value:
        _options(ctx).debug = True


def _remember_log_format(ctx: typer.Context, value: str | None) -> None:
    if value is not None:
        _check_word("--log-format", value, LOG_FORMATS)
        _options(ctx).given_log_format = value


def _remember_log_level(ctx: typer.Context, value: str | None) -> None:
    if value is not None:
        _check_word("--log-level", value, LOG_LEVELS)
        _options(ctx).given_log_level = value


def _check_word(option: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise UsageError(f"{option} {value!r} is none of {', '.join(allowed)}")


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


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
    log_format: Annotated[
        str | None,
        typer.Option(
            "--log-format",
            metavar="HOW",
            help=f"How log records look on stderr: {_listed(LOG_FORMATS)}; "
            f"without it what {LOG_FORMAT_VARIABLE} says",
            callback=_remember_log_format,
            rich_help_panel=EVERYWHERE,
        ),
    ] = None,
    log_level: Annotated[
        str | None,
        typer.Option(
            "--log-level",
            metavar="LEVEL",
            help=f"The least of our own log records: {_listed(LOG_LEVELS)}; "
            f"without it what {LOG_LEVEL_VARIABLE} says",
            callback=_remember_log_level,
            rich_help_panel=EVERYWHERE,
        ),
    ] = None,
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
