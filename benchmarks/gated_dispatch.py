"""Dispatches through each gate, against dispatches without one, on one server.

    python benchmarks/gated_dispatch.py [--quick] [--rounds N] [--size N]

Prints JSON: dispatches a second, the processor time and the history events of one, as medians over
rounds in which every kind takes its turn; and for each gate the median of what it reached of the
ungated figure of the same round. Nobody waits: limits are above what is dispatched, so the figures
are what a gate costs. `keys` has a key of its own for each event.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from processes import cpu_seconds
from temporalio.client import Client

from harn_temporal.bindings import Binding
from harn_temporal.contracts import DispatchRequest
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import EventLog
from harn_temporal.events import new_event
from harn_temporal.ingestion import ingest
from harn_temporal.manifest import load_manifest
from harn_temporal.registry import register
from harn_temporal.temporal.converter import data_converter
from harn_temporal.temporal.embedded_files import EmbeddedFiles
from harn_temporal.temporal.search_attributes import register_search_attributes
from harn_temporal.temporal.server_process import find_binary, start_server, stop_server
from harn_temporal.temporal.starter import DispatchHandle, Started, start_unended
from harn_temporal.worker import WorkerOptions, running_worker

IN_FLIGHT = 20
LIMIT_SECONDS = 600
MANY = 1_000_000

KINDS = {
    "ungated": "",
    "concurrency": f"concurrency = {{ max = {MANY} }}",
    "concurrency_keys": f'concurrency = {{ key = "event.id", max = {MANY} }}',
    "singleton_keys": 'singleton = { key = "event.id" }',
    "throttle": f'throttle = {{ period = "1s", max = {MANY} }}',
    "throttle_keys": f'throttle = {{ key = "event.id", period = "1s", max = {MANY} }}',
    "rate_limit": f'rate_limit = {{ period = "1s", max = {MANY} }}',
    "rate_limit_keys": f'rate_limit = {{ key = "event.id", period = "1s", max = {MANY} }}',
    "batch_of_one_keys": 'batch = { key = "event.id", size = 1, timeout = "1h" }',
}


def manifest_text() -> str:
    text = '[package]\nname = "benchmark"\n'
    for kind, gate in KINDS.items():
        text += f'\n[[triggers]]\nid = "{kind}"\nkind = "webhook"\nprovider = "webhook"\n'
        text += f'match = {{}}\nhandler = "nothing"\n{gate}\n'
    return text


@dataclass(frozen=True)
class Round:
    per_second: float
    worker_cpu_ms: float
    server_cpu_ms: float
    history_events: int


async def one(client: Client, log: EventLog, binding: Binding) -> DispatchHandle:
    event = new_event(provider="webhook", kind="ping", payload={})
    [taken] = await ingest(log, [binding], event, package=binding.package)
    assert taken.address is not None
    request = DispatchRequest(
        store_id=log.store_id,
        binding=binding,
        event_id=event.id,
        trace_id=event.trace_id,
        address=taken.address,
        event=event,
    )
    started = await start_unended(client, request, eager=True)
    assert isinstance(started, Started)
    outcome = await started.handle.result()
    if outcome.status != "succeeded":
        raise AssertionError(outcome)
    return started.handle


async def a_round(
    client: Client, log: EventLog, binding: Binding, size: int, server_pid: int
) -> Round:
    room = asyncio.Semaphore(IN_FLIGHT)

    async def next_one() -> None:
        async with room:
            await one(client, log, binding)

    cpu = cpu_seconds(os.getpid()), cpu_seconds(server_pid)
    began = time.perf_counter()
    async with asyncio.timeout(LIMIT_SECONDS), asyncio.TaskGroup() as group:
        for _ in range(size):
            group.create_task(next_one())
    seconds = time.perf_counter() - began
    worker_cpu, server_cpu = cpu_seconds(os.getpid()) - cpu[0], cpu_seconds(server_pid) - cpu[1]
    history = await (await one(client, log, binding)).fetch_history()
    return Round(
        per_second=size / seconds,
        worker_cpu_ms=1000 * worker_cpu / size,
        server_cpu_ms=1000 * server_cpu / size,
        history_events=len(history.events),
    )


async def measure(folder: Path, rounds: int, size: int) -> dict[str, Any]:
    (folder / "harn.toml").write_text(manifest_text())
    (folder / "lib.py").write_text("async def nothing(event):\n    return None\n")
    manifest = load_manifest(folder / "harn.toml")
    found: dict[str, list[Round]] = {kind: [] for kind in KINDS}
    async with AsyncExitStack() as stack:
        log = await open_event_log(StoreSettings("sqlite", folder / "events.sqlite"))
        stack.push_async_callback(log.close)
        files = EmbeddedFiles(folder / "server")
        files.server_lock.parent.mkdir(parents=True)
        process, server = start_server(files, find_binary(), None)
        stack.callback(stop_server, process)
        client = await connected(server.address)
        await register_search_attributes(client)
        worker = running_worker(client, log, manifest, WorkerOptions(pump=False))
        await stack.enter_async_context(worker)
        bindings = await register(log, manifest.package, manifest.bindings)
        for number in range(rounds + 1):  # the first one warms up
            for binding in bindings if number % 2 else reversed(bindings):
                measured = await a_round(client, log, binding, size, server.pid)
                if number:
                    found[binding.trigger_id].append(measured)
    return {
        "a_dispatch": {kind: _medians(of) for kind, of in found.items()},
        "of_ungated": {
            kind: round(
                statistics.median(
                    gated.per_second / ungated.per_second
                    for gated, ungated in zip(of, found["ungated"], strict=True)
                ),
                2,
            )
            for kind, of in found.items()
            if kind != "ungated"
        },
    }


def _medians(rounds: list[Round]) -> dict[str, float]:
    return {
        name: round(statistics.median(getattr(each, name) for each in rounds), 1)
        for name in Round.__dataclass_fields__
    }


async def connected(address: str) -> Client:
    """A client, as soon as the server that has begun to listen also answers."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while True:
            try:
                return await Client.connect(address, data_converter=data_converter)
            except RuntimeError:  # what the SDK raises while the server starts
                await asyncio.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a look at whether it runs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=int, default=100, help="dispatches of a kind in a round")
    options = parser.parse_args()
    rounds, size = (1, 5) if options.quick else (options.rounds, options.size)
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(measure(Path(folder), rounds, size))
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
