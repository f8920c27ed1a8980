"""`harn-temporal ingest`: one event for every trigger that matches."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from harn_temporal.cli.event_source import EventOptions, build_event
from harn_temporal.cli.option_groups import grouped
from harn_temporal.cli.options import CommonOptions, JsonOption, common_options
from harn_temporal.errors import UsageError

if TYPE_CHECKING:
    from harn_temporal.events import TriggerEvent
    from harn_temporal.ingestion import Ingested
    from harn_temporal.manifest import Manifest


@grouped
def ingest(
    ctx: typer.Context,
    *,
    provider: Annotated[
        str | None, typer.Option("--provider", metavar="NAME", help="The provider, such as github")
    ] = None,
    chosen: EventOptions,
    as_json: JsonOption = False,
) -> None:
    """Ingest one event for every trigger that matches.

    Exits 0 once an envelope for each of them is durable; a running worker dispatches them. Needs
    no Temporal.

    Example: harn-temporal ingest --provider github --kind issues.opened --payload issue.json
    """
    from harn_temporal.cli.observing import observe
    from harn_temporal.cli.stores import read_manifest

    options = common_options(ctx)
    observe(options)
    if chosen.event is not None and provider:
        raise UsageError("--event is a whole event; --provider is part of it")
    if chosen.event is None and not (provider and chosen.kind):
        raise UsageError("ingest needs --provider and --kind, or a whole event with --event")
    manifest = read_manifest(options, load_handlers=False)
    built = build_event(chosen, provider=provider or "", kind=chosen.kind or "")
    asyncio.run(_ingest(options, manifest, built, as_json=as_json))


async def _ingest(
    options: CommonOptions, manifest: Manifest, event: TriggerEvent, *, as_json: bool
) -> None:
    from harn_temporal.cli import ingested
    from harn_temporal.cli.output import print_json, warn
    from harn_temporal.cli.stores import event_log, worker_seen
    from harn_temporal.ingestion import ingest as append
    from harn_temporal.registry import register

    async with event_log(options) as log:
        bindings = await register(log, manifest.package, manifest.bindings)
        results: list[Ingested] = await append(log, bindings, event, package=manifest.package)
        seen = await worker_seen(log, manifest.package)
    if as_json:
        print_json({"event_id": event.id, "ingested": [ingested.to_json(each) for each in results]})
    else:
        for each in results:
            ingested.show(each)
    if not results:
        warn(f"no trigger of {manifest.path} matches {event.provider} {event.kind}")
    elif not seen and any(each.status == "accepted" for each in results):
        ingested.warn_of_absence(manifest)
