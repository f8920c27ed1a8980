"""Dispatches of a handler that does nothing, against workflows with one activity, on one server.

    python benchmarks/dispatch.py [--quick] [--profile] [--rounds N] [--size N] [--waiting N]

Prints JSON. The server is the embedded one, started for this and ended. Both kinds run in turn, in
rounds on the same worker process, so that what else the machine does falls on both; figures are
medians over rounds.
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
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from processes import Sampler, cpu_seconds, rss_mib
from raw_workflow import RawWorkflow, do_nothing
from temporalio.client import Client
from temporalio.worker import Worker

from harn_temporal.activities.envelopes import Envelopes
from harn_temporal.activities.pump_loop import Pump
from harn_temporal.bindings import Binding
from harn_temporal.contracts import DEFAULT_HEARTBEAT_TIMEOUT_MS, DispatchRequest
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import EventLog
from harn_temporal.eventlog.topics import INBOX_ENVELOPES
from harn_temporal.events import TriggerEvent, new_event
from harn_temporal.ingestion import ingest
from harn_temporal.manifest import Manifest, load_manifest
from harn_temporal.pump_figures import PumpFigures
from harn_temporal.registry import register
from harn_temporal.temporal.converter import data_converter
from harn_temporal.temporal.embedded_files import EmbeddedFiles
from harn_temporal.temporal.search_attributes import register_search_attributes
from harn_temporal.temporal.server_process import find_binary, start_server, stop_server
from harn_temporal.temporal.starter import Started, start_unended
from harn_temporal.worker import (
    DEFAULT_MAX_CONCURRENT,
    STICKY_TIMEOUT,
    WorkerOptions,
    running_worker,
)

IN_FLIGHT = 20
LIMIT_SECONDS = 600
RAW_QUEUE = "raw"

MANIFEST = """
[package]
name = "benchmark"

[[triggers]]
id = "nothing"
kind = "webhook"
provider = "webhook"
match = { events = ["ping"] }
handler = "nothing"

[[triggers]]
id = "fails"
kind = "webhook"
provider = "webhook"
match = { events = ["fail"] }
handler = "fails"
retry = { max = 2, backoff = "linear", delay_ms = 36000000 }
"""

LIB = """
async def nothing(event):
    return None


async def fails(event):
    raise ConnectionError("not today")
"""

PAYLOAD = {
    "repository": {"full_name": "lighthouse/beacon", "private": False, "id": 81_276_345},
    "issue": {"number": 17, "title": "The lamp flickers", "labels": [{"name": "bug"}] * 4},
    "text": "The lamp flickers when the wind comes from the west. " * 12,
}


@dataclass(frozen=True)
class Size:
    """Runs of a kind in a round, rounds, events for ingestion and pump, dispatches in a retry."""

    runs: int
    rounds: int
    events: int
    waiting: int


QUICK = Size(runs=30, rounds=2, events=200, waiting=50)
FULL = Size(runs=150, rounds=5, events=2000, waiting=1000)


@dataclass
class Round:
    """Milliseconds that each run took, and what all of them took together."""

    latencies_ms: list[float] = field(default_factory=list)
    seconds: float = 0.0
    worker_cpu: float = 0.0
    server_cpu: float = 0.0

    def figures(self) -> dict[str, float]:
        count = len(self.latencies_ms)
        return {
            "per_second": count / self.seconds,
            "p50_ms": statistics.median(self.latencies_ms),
            "p99_ms": sorted(self.latencies_ms)[min(count - 1, int(count * 0.99))],
            "worker_cpu_ms": 1000 * self.worker_cpu / count,
            "server_cpu_ms": 1000 * self.server_cpu / count,
        }


class Bench:
    def __init__(self, folder: Path, size: Size, *, profile: bool) -> None:
        self._folder = folder
        self._size = size
        self._sampler = Sampler() if profile else None

    async def run(self) -> dict[str, Any]:
        (self._folder / "harn.toml").write_text(MANIFEST)
        (self._folder / "lib.py").write_text(LIB)
        manifest = load_manifest(self._folder / "harn.toml")
        async with AsyncExitStack() as stack:
            log = await open_event_log(StoreSettings("sqlite", self._folder / "events.sqlite"))
            stack.push_async_callback(log.close)
            bindings = await register(log, manifest.package, manifest.bindings)
            ingestion = await self._ingestion(log, bindings, manifest)
            pump = await self._pump(log, bindings, manifest)
            files = EmbeddedFiles(self._folder / "server")
            files.server_lock.parent.mkdir(parents=True)
            process, server = start_server(files, find_binary(), None)
            stack.callback(stop_server, process)
            self._server_pid = server.pid
            client = await _connected(server.address)
            raw_client = await Client.connect(server.address)
            await register_search_attributes(client)
            options = WorkerOptions(pump=False)
            await stack.enter_async_context(running_worker(client, log, manifest, options))
            await stack.enter_async_context(_raw_worker(raw_client))
            compared = await self._compare(client, raw_client, log, bindings)
            waiting = await self._waiting(client, log, bindings)
        return {
            "size": self._size.__dict__,
            **compared,
            "ingestion_per_second": ingestion,
            "pump_per_second": pump,
            "waiting_in_a_retry": waiting,
            **({"profile": self._sampler.report()} if self._sampler else {}),
        }

    async def _ingestion(
        self, log: EventLog, bindings: Sequence[Binding], manifest: Manifest
    ) -> float:
        events = [_event("ping") for _ in range(self._size.events)]
        began = time.perf_counter()
        for event in events:
            await ingest(log, bindings, event, package=manifest.package)
        return round(len(events) / (time.perf_counter() - began), 1)

    async def _pump(self, log: EventLog, bindings: Sequence[Binding], manifest: Manifest) -> float:
        """What was ingested before, with a start that does nothing: the pump's own work."""
        stop, started = asyncio.Event(), 0

        async def start(_: DispatchRequest) -> None:
            nonlocal started
            started += 1

        figures = PumpFigures(2 * self._size.events)
        pump = Pump(log, start, _envelopes(log, bindings, manifest.package), figures)
        began = time.perf_counter()
        running = asyncio.ensure_future(pump.run(stop, lifetime_s=LIMIT_SECONDS))
        async with asyncio.timeout(LIMIT_SECONDS):
            while figures.started < self._size.events:  # noqa: ASYNC110 - a fact, looked at often
                await asyncio.sleep(0.002)
        seconds = time.perf_counter() - began
        stop.set()
        await running
        return round(self._size.events / seconds, 1)

    async def _compare(
        self, client: Client, raw_client: Client, log: EventLog, bindings: Sequence[Binding]
    ) -> dict[str, Any]:
        async def raw(event: TriggerEvent, _: DispatchRequest) -> str:
            workflow_id = f"raw/{event.id}"
            handle = await raw_client.start_workflow(
                RawWorkflow.run,
                event.to_json(),
                id=workflow_id,
                task_queue=RAW_QUEUE,
                request_eager_start=True,
            )
            await handle.result()
            return workflow_id

        async def dispatch(_: TriggerEvent, request: DispatchRequest) -> str:
            started = await start_unended(client, request, eager=True)  # as the pump does
            assert isinstance(started, Started)
            outcome = await started.handle.result()
            assert outcome.status == "succeeded"
            return started.handle.id

        kinds = {"raw": raw, "dispatch": dispatch}
        last = {name: await self._warm_up(run, log, bindings) for name, run in kinds.items()}
        busy: dict[str, list[Round]] = {"raw": [], "dispatch": []}
        alone: dict[str, list[Round]] = {"raw": [], "dispatch": []}
        for number in range(self._size.rounds):
            order = list(kinds) if number % 2 == 0 else list(reversed(kinds))
            for name in order:
                busy[name].append(
                    await self._round(
                        name, kinds[name], log, bindings, count=self._size.runs, in_flight=IN_FLIGHT
                    )
                )
            for name in order:
                few = max(5, self._size.runs // 5)
                alone[name].append(
                    await self._round(name, kinds[name], log, bindings, count=few, in_flight=1)
                )
        return {
            f"{IN_FLIGHT}_in_flight": _compared(busy),
            "one_at_a_time": _compared(alone),
            "history_events": {
                name: await _history_length(client, workflow_id)
                for name, workflow_id in last.items()
            },
        }

    async def _warm_up(
        self,
        run: Callable[[TriggerEvent, DispatchRequest], Awaitable[str]],
        log: EventLog,
        bindings: Sequence[Binding],
    ) -> str:
        pairs = await _ingested(log, bindings, "ping", IN_FLIGHT)
        ids = await asyncio.gather(*(run(*pair) for pair in pairs))
        return ids[-1]

    async def _round(
        self,
        name: str,
        run: Callable[[TriggerEvent, DispatchRequest], Awaitable[str]],
        log: EventLog,
        bindings: Sequence[Binding],
        *,
        count: int,
        in_flight: int,
    ) -> Round:
        pairs = await _ingested(log, bindings, "ping", count)
        measured = Round()

        async def worker() -> None:
            while pairs:
                pair = pairs.pop()
                began = time.perf_counter()
                await run(*pair)
                measured.latencies_ms.append(1000 * (time.perf_counter() - began))

        sampled = self._sampler if self._sampler and name == "dispatch" else None
        with sampled.recording() if sampled else nullcontext():
            cpu = cpu_seconds(os.getpid()), cpu_seconds(self._server_pid)
            began = time.perf_counter()
            await asyncio.wait_for(
                asyncio.gather(*(worker() for _ in range(in_flight))), LIMIT_SECONDS
            )
            measured.seconds = time.perf_counter() - began
            measured.worker_cpu = cpu_seconds(os.getpid()) - cpu[0]
            measured.server_cpu = cpu_seconds(self._server_pid) - cpu[1]
        return measured

    async def _waiting(
        self, client: Client, log: EventLog, bindings: Sequence[Binding]
    ) -> dict[str, Any]:
        """Memory of both processes, with so many dispatches in a retry wait of ten hours."""
        before = rss_mib(os.getpid()), rss_mib(self._server_pid)
        pairs = await _ingested(log, bindings, "fail", self._size.waiting)
        began = time.perf_counter()

        async def starter() -> None:
            while pairs:
                _, request = pairs.pop()
                await start_unended(client, request, eager=True)

        await asyncio.gather(*(starter() for _ in range(IN_FLIGHT)))
        async with asyncio.timeout(LIMIT_SECONDS):
            mark = 0
            while (await _retrying(log)) < self._size.waiting:
                mark = await log.changed(mark, 1.0)
        seconds = time.perf_counter() - began
        after = rss_mib(os.getpid()), rss_mib(self._server_pid)
        return {
            "dispatches": self._size.waiting,
            "per_second": round(self._size.waiting / seconds, 1),
            "worker_rss_mib": {"before": before[0], "after": after[0]},
            "server_rss_mib": {"before": before[1], "after": after[1]},
        }


def _raw_worker(client: Client) -> Worker:
    """With what the SDK gives a worker that is told nothing else, and the limits of ours."""
    return Worker(
        client,
        task_queue=RAW_QUEUE,
        workflows=[RawWorkflow],
        activities=[do_nothing],
        max_concurrent_activities=DEFAULT_MAX_CONCURRENT,
        sticky_queue_schedule_to_start_timeout=STICKY_TIMEOUT,
        graceful_shutdown_timeout=timedelta(seconds=1),
    )


def _event(kind: str) -> TriggerEvent:
    return new_event(provider="webhook", kind=kind, payload=PAYLOAD)


def _envelopes(log: EventLog, bindings: Sequence[Binding], package: str) -> Envelopes:
    return Envelopes(
        store_id=log.store_id,
        package=package,
        current={binding.trigger_id: binding for binding in bindings},
        search_attributes=True,
        heartbeat_timeout_ms=DEFAULT_HEARTBEAT_TIMEOUT_MS,
    )


async def _ingested(
    log: EventLog, bindings: Sequence[Binding], kind: str, count: int
) -> list[tuple[TriggerEvent, DispatchRequest]]:
    """Events whose envelopes are in the log, and the requests that the pump makes of them."""
    package = bindings[0].package
    envelopes = _envelopes(log, bindings, package)
    after = await log.query(lambda reader: reader.head(INBOX_ENVELOPES))
    events = [_event(kind) for _ in range(count)]
    for event in events:
        await ingest(log, bindings, event, package=package)
    records = await log.read(INBOX_ENVELOPES, after, count)
    requests = [envelopes.requests(record, lambda *_: None)[0] for record in records]
    return list(zip(events, requests, strict=True))


async def _retrying(log: EventLog) -> int:
    return await log.query(lambda reader: reader.dispatches.figures().retrying)


async def _history_length(client: Client, workflow_id: str) -> int:
    history = await client.get_workflow_handle(workflow_id).fetch_history()
    return len(history.events)


async def _connected(address: str) -> Client:
    """A client, as soon as the server that has begun to listen also answers."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while True:
            try:
                return await Client.connect(address, data_converter=data_converter)
            except RuntimeError:  # what the SDK raises while the server starts
                await asyncio.sleep(0.05)


def _compared(rounds: dict[str, list[Round]]) -> dict[str, Any]:
    """Medians over rounds of both kinds, and of the ratios within each round."""
    figures = {name: [each.figures() for each in of] for name, of in rounds.items()}
    names = list(figures["raw"][0])
    pairs = list(zip(figures["dispatch"], figures["raw"], strict=True))
    return {
        **{
            kind: {name: round(statistics.median(each[name] for each in of), 1) for name in names}
            for kind, of in figures.items()
        },
        "ratio": {
            name: round(statistics.median(ours[name] / raw[name] for ours, raw in pairs), 2)
            for name in names
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a look in a minute")
    parser.add_argument("--profile", action="store_true", help="sample the worker process too")
    parser.add_argument("--rounds", type=int, help="rounds of each kind")
    parser.add_argument("--size", type=int, help="runs of a kind in a round")
    parser.add_argument("--waiting", type=int, help="dispatches that wait in a retry")
    given = parser.parse_args()
    size = QUICK if given.quick else FULL
    size = Size(
        runs=given.size or size.runs,
        rounds=given.rounds or size.rounds,
        events=size.events,
        waiting=given.waiting or size.waiting,
    )
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), size, profile=given.profile)
        figures = asyncio.run(bench.run())
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")
    sys.stdout.flush()
    # The SDK's threads may abort a process whose interpreter finalizes: see harn_temporal/entry.py.
    os._exit(0)


if __name__ == "__main__":
    main()
