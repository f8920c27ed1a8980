"""`harn-temporal fire`: one event for one trigger."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from harn_temporal.cli.event_source import EventOptions, build_event, kind_for
from harn_temporal.cli.option_groups import grouped
from harn_temporal.cli.options import (
    AddressOption,
    CommonOptions,
    JsonOption,
    ProfileOption,
    common_options,
)
from harn_temporal.errors import UsageError

if TYPE_CHECKING:
    from harn_temporal.events import TriggerEvent
    from harn_temporal.manifest import Manifest


@grouped
def fire(
    ctx: typer.Context,
    trigger_id: Annotated[str, typer.Argument(metavar="TRIGGER_ID", help="A trigger's id")],
    *,
    chosen: EventOptions,
    wait: Annotated[
        bool,
        typer.Option("--wait", help="Run the dispatch here and print its outcome; 1 if it failed"),
    ] = False,
    as_json: JsonOption = False,
    address: AddressOption = None,
    profile: ProfileOption = None,
) -> None:
    """Ingest one event for one trigger, whatever the trigger's match says.

    Without --event and --payload the event is synthetic. Without --wait no Temporal is needed:
    the command ends once the envelope is durable, and a running worker dispatches it.

    Example: harn-temporal fire github-new-issue --payload issue.json --wait
    """
    from harn_temporal.cli.observing import observe
    from harn_temporal.cli.stores import find_binding, read_manifest

    options = common_options(ctx)
    observe(options)
    if not wait and (address or profile):
        raise UsageError("--address and --profile go with --wait: without it, no Temporal is used")
    manifest = read_manifest(options, load_handlers=wait)
    binding = find_binding(manifest, trigger_id)
    built = build_event(
        chosen,
        provider=binding.provider,
        kind=kind_for(binding, chosen),
        trigger_id=binding.trigger_id,
    )
    if not wait:
        asyncio.run(_append(options, manifest, trigger_id, built, as_json=as_json))
        return
    from harn_temporal.cli.fire_and_wait import fire_and_wait
    from harn_temporal.temporal.connect import TemporalOptions

    fire_and_wait(
        options,
        TemporalOptions(address, profile),
        manifest,
        trigger_id,
        built,
        as_json=as_json,
    )


async def _append(
    options: CommonOptions,
    manifest: Manifest,
    trigger_id: str,
    event: TriggerEvent,
    *,
    as_json: bool,
) -> None:
    from harn_temporal.cli import ingested
    from harn_temporal.cli.output import print_json
    from harn_temporal.cli.stores import event_log, worker_seen
    from harn_temporal.ingestion import ingest
    from harn_temporal.registry import register

    async with event_log(options) as log:
        bindings = await register(log, manifest.package, manifest.bindings)
        [result] = await ingest(log, bindings, event, package=manifest.package, only=trigger_id)
        seen = await worker_seen(log, manifest.package)
    if as_json:
        print_json(ingested.to_json(result))
    else:
        ingested.show(result)
    if result.status == "accepted" and not seen:
        ingested.warn_of_absence(manifest)
