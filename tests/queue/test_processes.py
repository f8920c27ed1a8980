"""Four processes drain one SQLite file, and are killed while they do so."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from harn_temporal.clock import system_clock
from harn_temporal.queue.operations import enqueue_many
from harn_temporal.queue.reading import figures

SCRIPT = Path(__file__).with_name("consumer_process.py")
CONSUMERS = 4


async def consumer(*arguments: object) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(sys.executable, str(SCRIPT), *map(str, arguments))


async def acked(log) -> int:
    return (await log.query(figures))[0]["acked"]


async def check_drain(bench, new_job, *, jobs: int, kills: int, ttl_ms: int, bound: float) -> None:
    """Kill a random consumer each time another share of the jobs is acked; another takes over."""
    bench.clock.now_ms = system_clock()
    log = await bench.open()
    await enqueue_many(log, [new_job(n, "abcd"[n % 4]) for n in range(jobs)])
    handled = bench.directory / "handled"
    handled.touch()
    arguments = (bench.settings.path, handled, ttl_ms, jobs)
    running = [await consumer(*arguments) for _ in range(CONSUMERS)]
    killed: set[str] = set()
    choose = random.Random(7)
    try:
        async with asyncio.timeout(bound):
            for kill in range(1, kills + 1):
                while await acked(log) < jobs * kill // (kills + 2):  # noqa: ASYNC110 - others do
                    await asyncio.sleep(0.01)
                victim = running.pop(choose.randrange(len(running)))
                victim.send_signal(signal.SIGKILL)
                await victim.wait()
                killed.add(str(victim.pid))
                running.append(await consumer(*arguments))
            assert [await process.wait() for process in running] == [0] * CONSUMERS
    finally:
        for process in running:
            if process.returncode is None:
                process.kill()
                await process.wait()

    by_job = defaultdict(list)
    for line in handled.read_text().splitlines():
        job_id, consumer_id = line.split()
        assert job_id != "lost"
        by_job[int(job_id)].append(consumer_id)
    assert sorted(by_job) == list(range(1, jobs + 1))
    again = {job_id: ids for job_id, ids in by_job.items() if len(ids) > 1}
    for ids in again.values():
        assert set(ids[:-1]) <= killed
    assert len(killed) == kills
    acks: Counter[int] = Counter()
    after = 0
    while records := await log.read("worker.triage.claims", after):
        acks.update(r.payload["job_event_id"] for r in records if r.kind == "job_acked")
        after = records[-1].event_id
    assert acks == dict.fromkeys(range(1, jobs + 1), 1)
    shown = (await log.query(figures))[0]
    await log.rebuild()
    assert (await log.query(figures))[0] == shown
    assert (shown["ready"], shown["in_flight"], shown["acked"]) == (0, 0, jobs)
    assert await log.query(lambda reader: reader.skipped()) == []


async def test_killed_consumers_lose_nothing(sqlite_bench, new_job):
    await check_drain(sqlite_bench, new_job, jobs=300, kills=3, ttl_ms=4000, bound=100)


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_killed_consumers_lose_nothing_in_a_long_run(sqlite_bench, new_job):
    await check_drain(sqlite_bench, new_job, jobs=5000, kills=30, ttl_ms=10_000, bound=800)
