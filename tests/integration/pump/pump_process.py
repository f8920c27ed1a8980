"""A worker in a process of its own whose pump stops for ever between admission and cursor.

Arguments: address, manifest, SQLite file, heartbeat timeout in seconds. Prints `admitted` when
it has come to that point: its dispatches are started, and the transaction that moves the cursor
has begun.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client

from harn_temporal.activities.attempt_log import AttemptLog
from harn_temporal.activities.pump_admission import Admissions
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.manifest import load_manifest
from harn_temporal.temporal.converter import data_converter
from harn_temporal.worker import WorkerOptions, running_worker


def stop_for_ever(*_arguments: object) -> None:
    sys.stdout.write("admitted\n")
    sys.stdout.flush()
    threading.Event().wait()


async def main(address: str, manifest: str, store: str, heartbeat_s: str = "1") -> None:
    client = await Client.connect(address, data_converter=data_converter)
    log = await open_event_log(StoreSettings("sqlite", Path(store)))
    options = WorkerOptions(heartbeat_timeout=timedelta(seconds=float(heartbeat_s)))
    async with running_worker(client, log, load_manifest(Path(manifest)), options):
        await asyncio.Event().wait()


async def wait_for_ever(*_arguments: object) -> None:
    """So that no handler is called here and then cut short, which would be a second attempt."""
    await asyncio.Event().wait()


Admissions._record_starts = stop_for_ever  # type: ignore[method-assign]
AttemptLog.start = wait_for_ever  # type: ignore[method-assign]
asyncio.run(main(*sys.argv[1:]))
