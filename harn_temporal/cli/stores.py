"""The manifest and the EventLog of commands that write."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING

from harn_temporal.cli.output import warn
from harn_temporal.errors import NotFoundError

if TYPE_CHECKING:
    from harn_temporal.bindings import Binding
    from harn_temporal.cli.options import CommonOptions
    from harn_temporal.eventlog.log import EventLog
    from harn_temporal.manifest import Manifest

WORKER_SEEN_MS = 60_000


def read_manifest(options: CommonOptions, *, load_handlers: bool) -> Manifest:
    """The manifest of the command; its warnings go to stderr."""
    from harn_temporal.manifest import load_manifest

    manifest = load_manifest(options.manifest, load_handlers=load_handlers)
    for warning in manifest.warnings:
        warn(warning)
    return manifest


def find_binding(manifest: Manifest, trigger_id: str) -> Binding:
    """Raises NotFoundError that names the nearest triggers of the manifest."""
    binding = manifest.binding(trigger_id)
    if binding is not None:
        return binding
    known = [each.trigger_id for each in manifest.bindings]
    near = get_close_matches(trigger_id, known, n=3)
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    else:
        hint = f"it has {', '.join(known)}" if known else "it has none"
    raise NotFoundError(f"{manifest.path} has no trigger {trigger_id!r}; {hint}")


@asynccontextmanager
async def event_log(options: CommonOptions) -> AsyncIterator[EventLog]:
    """The EventLog of the command, made where there is none."""
    from harn_temporal.eventlog import StoreSettings, open_event_log

    settings = StoreSettings.from_environment(options.state_dir, os.environ)
    if settings.kind == "memory":
        warn("the EventLog is in memory: what this command appends is gone when it ends")
    log = await open_event_log(settings)
    try:
        yield log
    finally:
        await log.close()


async def worker_seen(log: EventLog, package: str) -> bool:
    """Whether a pump of the package confirmed its cursor within the last minute."""
    from harn_temporal.eventlog.log import Reader
    from harn_temporal.eventlog.topics import INBOX_ENVELOPES
    from harn_temporal.naming import pump_consumer

    def look(reader: Reader) -> bool:
        consumer = reader.consumer(INBOX_ENVELOPES, pump_consumer(package))
        return consumer is not None and reader.now_ms - consumer.updated_at_ms <= WORKER_SEEN_MS

    return await log.query(look)
