"""A worker in a process of its own, as the command line runs one: SIGTERM ends it in order.

Arguments: address, manifest, SQLite file, grace in seconds, and `pump` or `no-pump`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client

from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.manifest import load_manifest
from harn_temporal.temporal.converter import data_converter
from harn_temporal.worker import WorkerOptions, running_worker


async def main(address: str, manifest: str, store: str, grace_s: str, pump: str) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    client = await Client.connect(address, data_converter=data_converter)
    log = await open_event_log(StoreSettings("sqlite", Path(store)))
    options = WorkerOptions(
        pump=pump == "pump",
        grace=timedelta(seconds=float(grace_s)),
        heartbeat_timeout=timedelta(seconds=1),
    )
    async with running_worker(client, log, load_manifest(Path(manifest)), options) as worker:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await worker.until(stop.wait())
    await log.close()


asyncio.run(main(*sys.argv[1:]))
sys.stdout.flush()
os._exit(0)
