"""Processes that serve a queue: one is killed beside another, and one is started again."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from datetime import timedelta

import pytest

SERVES = """
import asyncio, pathlib, sys
from temporalio.client import Client
from harn_temporal import consumers, left_consumers
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.manifest import load_manifest
from harn_temporal.queue import presence
from harn_temporal.temporal.converter import data_converter
from harn_temporal.worker import WorkerOptions, running_worker

presence.GONE_MS = 10_000
consumers.CONFIRM_S = left_consumers.LOOK_S = left_consumers.ENDED_LOOK_S = 0.5
consumer_id, address, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])


async def main():
    client = await Client.connect(address, data_converter=data_converter)
    log = await open_event_log(StoreSettings("sqlite", folder / "events.sqlite"))
    consumer = consumers.ConsumerOptions("triage", consumer_id, "serve", 4, ttl_ms=5000)
    options = WorkerOptions(pump=False, consume=(consumer,))
    async with running_worker(client, log, load_manifest(folder / "harn.toml"), options):
        await asyncio.Event().wait()


asyncio.run(main())
"""

LIB = """
import asyncio, os, pathlib

async def works(event):
    with (pathlib.Path(__file__).parent / "handled").open("a") as file:
        file.write(f"{event.raw['n']} {os.getpid()}\\n")
    await asyncio.sleep(0.2)


fails = slow = fails_once = works
"""


@pytest.fixture
def serving(queue, temporal_address):
    """Starts a process that serves the queue under an id; all are ended with the test."""
    (queue.folder / "lib.py").write_text(LIB)
    started = []

    def start(consumer_id):
        arguments = [sys.executable, "-c", SERVES, consumer_id, temporal_address, queue.folder]
        started.append(subprocess.Popen(arguments))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def handled(queue):
    """The processes in which each job ran."""
    found = defaultdict(list)
    path = queue.folder / "handled"
    for line in path.read_text().splitlines() if path.exists() else ():
        number, pid = line.split()
        found[int(number)].append(int(pid))
    return found


async def test_a_kill_takes_along_no_job_of_another_process(queue, serving):
    killed, lives = serving("killed"), serving("lives")
    jobs = await queue.fill("works", 120)

    async def both_work():
        pids = [pid for each in handled(queue).values() for pid in each]
        return pids.count(killed.pid) >= 8 and pids.count(lives.pid) >= 8

    await queue.until(both_work)
    killed.kill()

    async def all_acked():
        return await queue.acked() == jobs

    await queue.until(all_acked, 60)
    claimed_by = defaultdict(list)
    for claim in await queue.records("claims", "job_claimed"):
        claimed_by[claim["job_event_id"]].append(claim["consumer_id"])
    ran = handled(queue)
    taken_over = 0
    for number, job in enumerate(jobs):
        if "killed" not in claimed_by[job]:
            assert ran[number] == [lives.pid]
        elif claimed_by[job] == ["killed", "lives"]:
            taken_over += 1
            assert ran[number] in ([killed.pid, lives.pid], [lives.pid])
        else:
            assert claimed_by[job] == ["killed"]
    assert taken_over

    async def nothing_is_left():
        wanted = f'ExecutionStatus = "Running" AND TaskQueue = "{queue.tasks("killed")}"'
        return not [each async for each in queue.client.list_workflows(wanted)]

    await queue.until(nothing_is_left, 90)


async def test_a_process_of_the_same_id_goes_on_serving(queue):
    """The consumer that it adopts was told to stop, and ends when its job has."""
    [slow] = await queue.fill("slow")
    serve = queue.options("serve")

    async def begun():
        return (queue.folder / "begun-0").exists()

    async with queue.worker(serve, grace=timedelta(seconds=0.2)):
        await queue.until(begun)
    assert await queue.acked() == []
    (queue.folder / "go").touch()
    async with queue.worker(serve):

        async def slow_is_acked():
            return await queue.acked() == [slow]

        await queue.until(slow_is_acked)
        [more] = await queue.fill("works")

        async def both_are_acked():
            return await queue.acked() == [slow, more]

        await queue.until(both_are_acked)
    assert await queue.kinds() == {"job_claimed": 2, "job_acked": 2}
