"""Jobs a second that one consumer drains, with children and inline, against raw Temporal.

    python benchmarks/drain.py [JOBS] [--concurrency N] [--rounds N] [--only WAY] [--quick]

Prints JSON. The handler does nothing. `raw` is a workflow that runs as many child workflows of one
activity each, as many at a time; each figure is taken on a server and a store of its own, and is
the median of the rounds, in which the ways take turns. Processor time is
that of the worker's process, a job.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from raw_parent import RawParent, RawParentInput
from raw_workflow import RawWorkflow, do_nothing
from temporalio.client import Client
from temporalio.worker import Worker

from harn_temporal.consumers import ConsumerOptions, start_consumer
from harn_temporal.contracts import DEFAULT_HEARTBEAT_TIMEOUT_MS
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.events import new_event
from harn_temporal.manifest import load_manifest
from harn_temporal.naming import consumer_queue
from harn_temporal.queue.models import NewJob
from harn_temporal.queue.operations import enqueue_many
from harn_temporal.temporal.connect import TemporalOptions, connect
from harn_temporal.worker import WorkerOptions, running_worker

JOBS = 300
QUICK_JOBS = 100
ROUNDS = 3
CONCURRENCY = 16
TASK_QUEUE = "raw"

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


class Used(NamedTuple):
    seconds: float
    cpu_seconds: float

    @classmethod
    def now(cls) -> Used:
        return cls(time.perf_counter(), time.process_time())

    def since(self, began: Used) -> Used:
        return Used(self.seconds - began.seconds, self.cpu_seconds - began.cpu_seconds)


def job(number: int) -> NewJob:
    event = new_event(provider="webhook", kind="ping", payload={"number": number})
    return NewJob(
        queue="bench", trigger_id="nothing", binding_key="nothing@v1", event=event.to_json()
    )


async def raw(client: Client, folder: Path, jobs: int, concurrency: int) -> Used:  # noqa: ARG001
    async with Worker(
        client,
        task_queue=TASK_QUEUE,
        workflows=[RawParent, RawWorkflow],
        activities=[do_nothing],
        max_concurrent_activities=concurrency,
    ):
        began = Used.now()
        events = [job(number).event for number in range(jobs)]
        await client.execute_workflow(
            RawParent.run,
            RawParentInput(events, concurrency),
            id="raw-parent",
            task_queue=TASK_QUEUE,
        )
        return Used.now().since(began)


def drain(*, inline: bool) -> Callable[[Client, Path, int, int], Awaitable[Used]]:
    async def run(client: Client, folder: Path, jobs: int, concurrency: int) -> Used:
        (folder / "harn.toml").write_text(MANIFEST)
        (folder / "lib.py").write_text("async def nothing(event):\n    return None\n")
        log = await open_event_log(StoreSettings("sqlite", folder / "events.sqlite"))
        await enqueue_many(log, [job(number) for number in range(jobs)])
        manifest = load_manifest(folder / "harn.toml")
        tasks = consumer_queue(log.store_id, manifest.package, "bench")
        worker = WorkerOptions(pump=False, max_concurrent=concurrency, tasks=tasks)
        async with running_worker(client, log, manifest, worker):
            began = Used.now()
            handle = await start_consumer(
                client,
                log,
                manifest.package,
                ConsumerOptions("bench", "bench", "drain", concurrency, inline=inline),
                search_attributes=True,
                heartbeat_timeout_ms=DEFAULT_HEARTBEAT_TIMEOUT_MS,
            )
            result = await handle.result()
            took = Used.now().since(began)
        await log.close()
        if result.counts.acked != jobs:
            raise SystemExit(f"{result.counts.acked} of {jobs} jobs were acked")
        return took

    return run


WAYS = {"raw": raw, "child": drain(inline=False), "inline": drain(inline=True)}


async def measure(way: str, jobs: int, concurrency: int) -> Used:
    with tempfile.TemporaryDirectory() as folder:
        async with connect(TemporalOptions(), Path(folder)) as connection:
            return await WAYS[way](connection.client, Path(folder), jobs, concurrency)


async def measure_all(ways: list[str], jobs: int, concurrency: int, rounds: int) -> dict[str, Any]:
    rates: dict[str, list[float]] = {way: [] for way in ways}
    cpu_ms: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            used = await measure(way, jobs, concurrency)
            rates[way].append(jobs / used.seconds)
            cpu_ms[way].append(1000 * used.cpu_seconds / jobs)
    figures: dict[str, Any] = {"jobs": jobs, "concurrency": concurrency, "rounds": rounds}
    for way, found in rates.items():
        figures[f"{way}_per_second"] = round(median(found), 1)
        figures[f"{way}_worker_cpu_ms"] = round(median(cpu_ms[way]), 1)
        if way != "raw" and "raw" in rates:
            ratios = [rate / raw for rate, raw in zip(found, rates["raw"], strict=True)]
            figures[f"{way}_of_raw"] = round(median(ratios), 2)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="?", type=int, default=JOBS)
    parser.add_argument("--concurrency", type=int, default=CONCURRENCY)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--quick", action="store_true", help="one round of few jobs")
    parser.add_argument("--only", choices=sorted(WAYS))
    given = parser.parse_args()
    ways = [given.only] if given.only else list(WAYS)
    jobs, rounds = (QUICK_JOBS, 1) if given.quick else (given.jobs, given.rounds)
    figures = asyncio.run(measure_all(ways, jobs, given.concurrency, rounds))
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")
    sys.stdout.flush()
    # The SDK's threads may abort a process whose interpreter finalizes: see harn_temporal/entry.py.
    os._exit(0)


if __name__ == "__main__":
    main()
