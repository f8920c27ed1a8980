"""Drains that are killed again and again: every job is acked once, and none is lost."""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections import defaultdict

import pytest

from harn_temporal.eventlog import StoreSettings, open_event_log

CONSUMER_PID = re.compile(r"-pid(\d+)-")

LIB = """
import asyncio
import os
from pathlib import Path

HERE = Path(__file__).parent


async def on_task(event):
    with (HERE / "handled").open("a") as file:
        file.write(f"{event.raw['n']}-{os.getpid()}\\n")
    await asyncio.sleep(0.02)
"""


class Drains:
    """So many at a time, of one package, each started anew when it was killed."""

    def __init__(self, place, count, *options):
        self._place = place
        self._options = options
        self.killed = set()
        self.running = [self._start() for _ in range(count)]

    def _start(self):
        return self._place.start(
            "queue", "drain", "triage", "--claim-ttl", "5s", "--max-concurrent", "8",
            "--config", "consumer/harn.toml", "--state-dir", "./state", *self._options,
        )  # fmt: skip

    def start_those_that_ended(self):
        for number, process in enumerate(self.running):
            if process.poll() is not None:
                self.check_end(process)
                self.running[number] = self._start()

    def check_end(self, process):
        """Exits 1 where it handled a job and could not ack it: its claim was lost."""
        code = process.wait(90)
        told = (self._place.folder / f"err-{self._place.started.index(process)}").read_text()
        assert code == ("claims were lost" in told), told

    def kill(self, number):
        process = self.running[number]
        if process.poll() is None:
            process.kill()
            process.wait()
            self.killed.add(process.pid)
        self.running[number] = self._start()


def kill_while_draining(place, *, jobs, consumers, kills, options):
    (place.folder / "consumer/lib.py").write_text(LIB)
    lines = "".join(json.dumps({"kind": "a2a.task.received", "n": n}) + "\n" for n in range(jobs))
    (place.folder / "jobs.jsonl").write_text(lines)
    enqueued = place.queue("enqueue", "triage", "incoming-review-task", "--from", "jobs.jsonl")
    assert enqueued.code == 0, enqueued.err
    drains = Drains(place, consumers, *options)
    chance = random.Random(20_260_101)
    for number in range(kills):
        wanted = min(jobs - 1, (number + 1) * jobs // (kills + 2))
        place.eventually(lambda wanted=wanted: len(set(place.handled)) >= wanted, 100)
        drains.kill(chance.randrange(consumers))
    held = asyncio.run(all_acked(place, drains, jobs))
    for process in drains.running:
        drains.check_end(process)
    check(place, drains, held, jobs)


def check(place, drains, held, jobs):
    """A job runs in the drain that claimed it, and again only where a killed drain held it."""
    ran = defaultdict(list)
    for line in place.handled:
        number, _, pid = line.partition("-")
        ran[int(number)].append(int(pid))
    assert sorted(ran) == list(range(jobs))
    for number, pids in ran.items():
        if not held[number] & drains.killed:
            assert len(pids) == 1, f"job {number} ran in {pids}"
            assert set(pids) == held[number]


async def all_acked(place, drains, jobs):
    """Wait until each job is acked, once. Gives the pids of the drains that held each one.

    What a killed drain holds is not ready until its claim expires, so others may end before.
    """
    log = await open_event_log(StoreSettings("sqlite", place.folder / "state/events.sqlite"))
    deadline = time.monotonic() + 3600
    while True:
        records = await log.read("worker.triage.claims", 0, 1_000_000)
        acked = [record.payload["job_event_id"] for record in records if record.kind == "job_acked"]
        if len(set(acked)) == jobs:
            break
        assert time.monotonic() < deadline
        drains.start_those_that_ended()
        await asyncio.sleep(0.2)
    assert len(acked) == jobs
    numbers = {
        record.event_id: record.payload["event"]["provider_payload"]["raw"]["n"]
        for record in await log.read("worker.triage", 0, 1_000_000)
    }
    held = defaultdict(set)
    for record in records:
        if record.kind == "job_claimed":
            pid = CONSUMER_PID.search(record.payload["consumer_id"])
            held[numbers[record.payload["job_event_id"]]].add(int(pid[1]))
    await log.close()
    return held


def test_killed_drains(place):
    kill_while_draining(place, jobs=60, consumers=2, kills=2, options=["--inline"])


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_four_consumers_with_children(place):
    kill_while_draining(place, jobs=5000, consumers=4, kills=120, options=[])
