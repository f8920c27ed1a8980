"""What worker queues cost in the store: enqueuing, claiming, acknowledging, opening.

    python benchmarks/queues.py [--quick] [--sizes 1000,100000] [--keys 1,100] [--seconds 2]

Prints JSON: operations a second, and microseconds of processor time for each, for queues of so many
ready jobs of so many tenants, with both strategies, claiming one job or 64 at a time. `flatness` is
the processor time of the slowest size over that of the fastest: other programs do not change it;
`four_consumers` is four processes on one file, each claiming 64 jobs at a time and acking them;
`behind` is a projection that catches up with what another program appended to the same file.
(A file called `queue.py` here would hide Python's own module of that name from its neighbours.)
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import sqlite3
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import EventLog
from harn_temporal.eventlog.topics import queue_topic
from harn_temporal.queue.models import Claim, NewJob, Settlement
from harn_temporal.queue.operations import WorkerQueue, enqueue_many
from harn_temporal.scheduler import Policy

QUEUE = "benchmark"
BATCH = 64
CONSUMERS = 4
CHUNK = 10_000
TTL_MS = 3_600_000
STRATEGIES = {
    "fifo": Policy(),
    # Without the starvation age, which on a backlog this old would take the place of shares.
    "drr": Policy(strategy="drr", starvation_age_ms=0),
}


class Jobs:
    """Gives jobs of `keys` tenants in turn."""

    def __init__(self, keys: int) -> None:
        self._keys = keys
        self._made = 0

    def take(self, count: int) -> list[NewJob]:
        first, self._made = self._made, self._made + count
        return [self._job(number) for number in range(first, self._made)]

    def _job(self, number: int) -> NewJob:
        event = {
            "id": f"trigger_evt_{number:012}",
            "provider": "webhook",
            "kind": "task.created",
            "received_at": "2026-01-02T03:04:05.000Z",
            "occurred_at": None,
            "dedupe_key": f"delivery-{number}",
            "trace_id": f"trace_{number:012}",
            "tenant_id": f"tenant-{number % self._keys:06}",
            "headers": {"content-type": "application/json"},
            "provider_payload": {"provider": "webhook", "raw": {"number": number}},
            "signature_status": {"state": "unsigned"},
        }
        return NewJob.model_construct(
            queue=QUEUE,
            trigger_id="task",
            binding_key="task@v1",
            binding_version=1,
            event=event,
            replay_of_event_id=None,
            priority="normal",
            available_at_ms=None,
        )


async def fill(log: EventLog, jobs: Jobs, count: int) -> float:
    """Enqueue so many jobs; how many a second."""
    began = time.perf_counter()
    for start in range(0, count, CHUNK):
        await enqueue_many(log, jobs.take(min(CHUNK, count - start)))
    return count / (time.perf_counter() - began)


@dataclass(frozen=True)
class Rate:
    per_second: float
    cpu_us: float
    done: int

    def to_json(self) -> dict[str, int]:
        return {"per_second": round(self.per_second), "cpu_us": round(self.cpu_us)}


async def rate(act: Callable[[], Awaitable[int]], seconds: float, limit: int) -> Rate:
    """Of operations: for so many seconds, or up to a limit."""
    done, began, cpu = 0, time.perf_counter(), time.process_time()
    while done < limit and time.perf_counter() - began < seconds:
        done += await act()
    used, took = time.process_time() - cpu, time.perf_counter() - began
    return Rate(done / took, used / done * 1e6, done)


def acked(claims: tuple[Claim, ...]) -> list[Settlement]:
    return [
        Settlement(job_event_id=each.job_event_id, claim_id=each.claim_id, ack=True)
        for each in claims
    ]


async def claim(queue: WorkerQueue, limit: int) -> int:
    return len((await queue.claim("bench", limit, ttl_ms=TTL_MS)).claims)


async def claim_and_ack(queue: WorkerQueue, limit: int) -> int:
    claims = (await queue.claim("bench", limit, ttl_ms=TTL_MS)).claims
    await queue.settle("bench", acked(claims))
    return len(claims)


async def measure_claims(
    log: EventLog, jobs: Jobs, size: int, seconds: float
) -> dict[str, dict[str, dict[str, int]]]:
    """Each figure is taken from a queue that is as long as before: what was taken is replaced."""
    figures: dict[str, dict[str, dict[str, int]]] = {}
    for strategy, policy in STRATEGIES.items():
        queue = WorkerQueue(log, QUEUE, policy)
        await claim(queue, 1)
        of: dict[str, dict[str, int]] = {}
        for name, act, limit in (
            ("claim_single", claim, 1),
            ("claim_batch_64", claim, BATCH),
            ("claim_and_ack_batch_64", claim_and_ack, BATCH),
        ):
            found = await rate(partial(act, queue, limit), seconds, size // 2)
            of[name] = found.to_json()
            await fill(log, jobs, found.done)
        figures[strategy] = of
    return figures


async def measure_opening(path: Path) -> float:
    """Seconds until a store whose projections are current has given its first claim."""
    began = time.perf_counter()
    log = await open_event_log(StoreSettings("sqlite", path))
    try:
        await claim(WorkerQueue(log, QUEUE, STRATEGIES["fifo"]), 1)
        return time.perf_counter() - began
    finally:
        await log.close()


async def measure(size: int, keys: int, seconds: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.sqlite"
        jobs = Jobs(keys)
        log = await open_event_log(StoreSettings("sqlite", path))
        try:
            enqueued = await fill(log, jobs, size)
            figures = await measure_claims(log, jobs, size, seconds)
        finally:
            await log.close()
        opening = await measure_opening(path)
        return {
            "jobs": size,
            "keys": keys,
            "enqueue": round(enqueued),
            **figures,
            "open_seconds": round(opening, 3),
        }


async def measure_consumers(seconds: float, size: int, keys: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.sqlite"
        log = await open_event_log(StoreSettings("sqlite", path))
        try:
            await fill(log, Jobs(keys), size)
        finally:
            await log.close()
        arguments = [sys.executable, __file__, "--consumer", str(path), "--seconds", str(seconds)]
        running = [
            await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.PIPE)
            for _ in range(CONSUMERS)
        ]
        told = [await process.communicate() for process in running]
        rates = [json.loads(out) for out, _ in told]
        return {"jobs": size, "keys": keys, "claim_and_ack_batch_64": round(sum(rates))}


async def measure_catching_up(count: int) -> dict[str, Any]:
    """How long the longest write transaction takes while so many foreign records are folded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.sqlite"
        log = await open_event_log(StoreSettings("sqlite", path))
        try:
            append_as_others_do(path, count)
            lasted = time_transactions(log)
            began = time.perf_counter()
            await claim(WorkerQueue(log, QUEUE, STRATEGIES["fifo"]), 1)
            took = time.perf_counter() - began
        finally:
            await log.close()
        return {
            "records": count,
            "seconds": round(took, 2),
            "transactions": len(lasted),
            "longest_transaction_ms": round(max(lasted) * 1000, 1),
        }


def append_as_others_do(path: Path, count: int) -> None:
    topic = queue_topic(QUEUE)
    rows = (
        (
            topic,
            number,
            "trigger_dispatch",
            json.dumps(job.model_dump(exclude={"available_at_ms"})).encode(),
            "{}",
            number,
        )
        for number, job in enumerate(Jobs(100).take(count), 1)
    )
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.execute("INSERT INTO topic_heads VALUES (?, ?)", (topic, count))


def time_transactions(log: EventLog) -> list[float]:
    """Seconds of each write transaction from now on: others wait for so long."""
    writer = log._writer  # type: ignore[attr-defined]  # noqa: SLF001 - nothing else tells
    lasted: list[float] = []
    began = [0.0]
    begin, commit = writer.begin, writer.commit

    def timed_begin(*, write: bool) -> None:
        begin(write=write)
        began[0] = time.perf_counter()

    def timed_commit() -> None:
        commit()
        lasted.append(time.perf_counter() - began[0])

    writer.begin, writer.commit = timed_begin, timed_commit
    return lasted


async def consume(path: Path, seconds: float) -> float:
    log = await open_event_log(StoreSettings("sqlite", path))
    try:
        queue = WorkerQueue(log, QUEUE, STRATEGIES["drr"])
        return (await rate(lambda: claim_and_ack(queue, BATCH), seconds, sys.maxsize)).per_second
    finally:
        await log.close()


def flatness(cases: list[dict[str, Any]]) -> dict[str, float]:
    """For each way to claim: the slowest over the fastest size, at the worst number of keys."""
    worst: dict[str, float] = {}
    for keys in {case["keys"] for case in cases}:
        of = [case for case in cases if case["keys"] == keys]
        for strategy in STRATEGIES:
            for name in of[0][strategy]:
                costs = [case[strategy][name]["cpu_us"] for case in of]
                where = f"{strategy}/{name}"
                worst[where] = max(worst.get(where, 0), round(max(costs) / min(costs), 2))
    return worst


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small queues, under two minutes")
    parser.add_argument("--sizes", default=None, help="ready jobs, separated by commas")
    parser.add_argument("--keys", default=None, help="tenants, separated by commas")
    parser.add_argument("--seconds", type=float, default=None, help="for each figure")
    parser.add_argument("--consumer", type=Path, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.consumer is not None:
        sys.stdout.write(json.dumps(await consume(options.consumer, options.seconds)))
        return
    sizes = options.sizes or ("1000,100000" if options.quick else "1000,100000,1000000")
    keys = options.keys or ("1,100" if options.quick else "1,100,10000")
    seconds = options.seconds or (0.7 if options.quick else 3.0)
    cases = [
        await measure(int(size), int(count), seconds)
        for size in sizes.split(",")
        for count in keys.split(",")
    ]
    consumers = await measure_consumers(seconds, 20_000, 100)
    json.dump(
        {
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "cases": cases,
            "flatness": flatness(cases),
            "four_consumers": consumers,
            "behind": await measure_catching_up(10_000 if options.quick else 100_000),
        },
        sys.stdout,
        indent=2,
    )
    sys.stdout.write("\n")


if __name__ == "__main__":
    asyncio.run(main())
