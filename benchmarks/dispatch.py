"""Dispatches a second, from the envelope to the outcome, on an embedded server and a fresh store.

    python benchmarks/dispatch.py [EVENTS]

Prints JSON. The handler does nothing: what is measured is everything around it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import EventLog
from harn_temporal.eventlog.topics import TRIGGER_OUTBOX
from harn_temporal.events import new_event
from harn_temporal.headers import OUTCOME
from harn_temporal.ingestion import ingest
from harn_temporal.inspection.following import follow
from harn_temporal.manifest import load_manifest
from harn_temporal.registry import register
from harn_temporal.temporal.connect import TemporalOptions, connect
from harn_temporal.worker import WorkerOptions, running_worker

EVENTS = 200
LIMIT_SECONDS = 300

MANIFEST = """
[package]
name = "benchmark"

[[triggers]]
id = "nothing"
kind = "webhook"
provider = "webhook"
match = { events = ["ping"] }
handler = "nothing"
"""


async def measure(events: int, folder: Path) -> dict[str, Any]:
    (folder / "harn.toml").write_text(MANIFEST)
    (folder / "lib.py").write_text("async def nothing(event):\n    return None\n")
    manifest = load_manifest(folder / "harn.toml")
    log = await open_event_log(StoreSettings("sqlite", folder / "events.sqlite"))
    try:
        bindings = await register(log, manifest.package, manifest.bindings)
        began = time.perf_counter()
        for number in range(events):
            event = new_event(provider="webhook", kind="ping", payload={"number": number})
            await ingest(log, bindings, event, package=manifest.package)
        ingested = time.perf_counter() - began
        async with connect(TemporalOptions(), folder) as connection:
            began = time.perf_counter()
            async with running_worker(connection.client, log, manifest, WorkerOptions()):
                await asyncio.wait_for(_outcomes(log, events), LIMIT_SECONDS)
                dispatched = time.perf_counter() - began
    finally:
        await log.close()
    return {
        "events": events,
        "ingested_per_second": round(events / ingested, 1),
        "dispatched_per_second": round(events / dispatched, 1),
    }


async def _outcomes(log: EventLog, wanted: int) -> None:
    """Wait until so many dispatches have ended."""
    found = 0
    async for record in follow(log, [TRIGGER_OUTBOX], last=10 * wanted):
        found += OUTCOME in record.headers
        if found == wanted:
            return


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(measure(events, Path(folder)))
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")
    sys.stdout.flush()
    # The SDK's threads may abort a process whose interpreter finalizes: see harn_temporal/entry.py.
    os._exit(0)


if __name__ == "__main__":
    main()
