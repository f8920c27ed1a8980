"""`harn-temporal doctor`: what is wrong with the set-up, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from harn_temporal.cli.options import (
    AddressOption,
    CommonOptions,
    JsonOption,
    ProfileOption,
    common_options,
)

if TYPE_CHECKING:
    from harn_temporal.checkup.check import Check
    from harn_temporal.temporal.connect import TemporalOptions


def doctor(
    ctx: typer.Context,
    *,
    address: AddressOption = None,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check Python, manifest, handlers, store, workers and Temporal. Exit code 1 where one fails.

    It starts no server and writes nothing.

    Example: harn-temporal doctor --config harn.toml
    """
    import asyncio

    from harn_temporal.cli.output import print_json
    from harn_temporal.temporal.connect import TemporalOptions

    temporal = TemporalOptions(address=address, profile=profile)
    checks = asyncio.run(_checks(common_options(ctx), temporal))
    fine = all(check.state != "error" for check in checks)
    if as_json:
        print_json({"ok": fine, "checks": [check.to_json() for check in checks]})
    else:
        _print(checks)
    if not fine:
        raise typer.Exit(1)


async def _checks(options: CommonOptions, temporal: TemporalOptions) -> list[Check]:
    import os

    from harn_temporal.checkup.service import check_temporal
    from harn_temporal.checkup.setup import (
        check_handlers,
        check_manifest,
        check_python,
        check_state_dir,
    )
    from harn_temporal.checkup.store import check_store

    manifest_check, manifest = check_manifest(options.manifest)
    checks = [check_python(), manifest_check]
    if manifest is not None:
        checks.append(check_handlers(options.manifest))
    checks.append(check_state_dir(options.named_state_dir))
    package = None if manifest is None else manifest.package
    checks += await check_store(options.named_state_dir, os.environ, package)
    return [*checks, *await check_temporal(temporal, options.named_state_dir)]


def _print(checks: list[Check]) -> None:
    from rich.table import Table
    from rich.text import Text

    from harn_temporal.cli.tables import console_for_people, printable

    styles = {"ok": "green", "warning": "yellow", "error": "red"}
    table = Table(box=None, show_header=False, pad_edge=False)
    for check in checks:
        found = "\n".join(printable(part) for part in check.found.splitlines())
        if check.advice is not None:
            found += f"\n-> {check.advice}"
        table.add_row(Text(check.state, style=styles[check.state]), check.name, Text(found))
    console_for_people().print(table)
