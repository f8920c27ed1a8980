"""Workers in processes of their own: one is killed, one is told to stop, another goes on."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from harn_temporal.temporal.starter import start_dispatch

PROGRAM = Path(__file__).with_name("worker_process.py")
HEARTBEAT_MS = 1_000
RETRY_MS = 4_000

LIB = """
import asyncio
import pathlib

async def hangs_once(event, context):
    begun = pathlib.Path(event.raw["folder"], "begun")
    if not begun.exists():
        begun.touch()
        await asyncio.Event().wait()
    return context.attempt

def fails_once(event, context):
    if context.attempt == 1:
        raise ValueError("once")
    return context.attempt
"""


@pytest.fixture
def backend():
    return "sqlite"


@pytest.fixture
def worker(temporal_address, tmp_path):
    @asynccontextmanager
    async def run(package, grace_s=0.3, pump="no-pump"):
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(PROGRAM),
            temporal_address,
            str(package.manifest.path),
            str(tmp_path / "events.sqlite"),
            str(grace_s),
            pump,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            line = await asyncio.wait_for(process.stdout.readline(), 30)
            assert line == b"ready\n"
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    return run


def lifecycle_of(records, event_id):
    return [
        (record.kind, record.payload["attempt"], record.occurred_at_ms)
        for record in records
        if record.kind != "state_transition" and record.payload["event_id"] == event_id
    ]


async def test_sigkill_inside_a_handler(temporal_client, make_package, harness, worker, tmp_path):
    package = make_package(LIB, harness.trigger("hangs_once", harness.FAST))
    request = await package.request({"folder": str(tmp_path)}, heartbeat_timeout_ms=HEARTBEAT_MS)
    log = package.log
    async with worker(package) as first:
        started = await start_dispatch(temporal_client, log, request)

        async def begun():
            return (tmp_path / "begun").exists()

        await harness.until(begun)
        first.kill()
        await first.wait()
        async with worker(package):
            outcome = await asyncio.wait_for(started.handle.result(), 30)
    assert (outcome.status, outcome.attempt_count, outcome.result) == ("succeeded", 2, 2)
    lifecycle = lifecycle_of(await log.read("triggers.lifecycle"), request.event_id)
    assert [(kind, attempt) for kind, attempt, _ in lifecycle] == [
        ("DispatchStarted", 1),
        ("DispatchFailed", 1),
        ("RetryScheduled", 2),
        ("DispatchStarted", 2),
        ("DispatchSucceeded", 2),
    ]
    attempts = await log.read("trigger.attempts")
    assert [r.kind for r in attempts] == ["attempt_recorded", "retry_scheduled", "attempt_recorded"]
    assert attempts[0].payload["error_msg"] == "the worker that ran this attempt stopped answering"
    assert attempts[0].payload["outcome"] == "failed"
    kinds = Counter(r.kind for r in await log.read("trigger.outbox"))
    assert kinds == {"dispatch_started": 2, "dispatch_failed": 1, "dispatch_succeeded": 1}


async def test_sigterm_with_a_running_handler_and_a_pending_retry(
    temporal_client, make_package, harness, worker, tmp_path
):
    package = make_package(
        LIB,
        harness.trigger("hangs_once"),
        harness.trigger(
            "fails_once",
            f'retry = {{ max = 3, backoff = "linear", delay_ms = {RETRY_MS} }}',
            trigger_id="waits",
        ),
    )
    log = package.log
    running = await package.request({"folder": str(tmp_path)})
    waiting = await package.request(trigger_id="waits")
    async with worker(package) as first:
        started = await start_dispatch(temporal_client, log, running)
        retried = await start_dispatch(temporal_client, log, waiting)

        async def both():
            state = await harness.state(retried.handle)
            return state.phase == "retry_wait" and (tmp_path / "begun").exists()

        await harness.until(both)
        first.terminate()
        assert await asyncio.wait_for(first.wait(), 15) == 0
    assert len(await log.read("trigger.outbox")) == 3  # two starts and a failure: no more was told
    async with worker(package):
        outcome, late = await asyncio.wait_for(
            asyncio.gather(started.handle.result(), retried.handle.result()), 30
        )
    assert (outcome.status, outcome.attempt_count, outcome.result) == ("succeeded", 1, 1)
    records = await log.read("triggers.lifecycle")
    assert [(kind, n) for kind, n, _ in lifecycle_of(records, running.event_id)] == [
        ("DispatchStarted", 1),
        ("DispatchSucceeded", 1),
    ]
    assert (late.status, late.attempt_count, late.result) == ("succeeded", 2, 2)
    of_late = lifecycle_of(records, waiting.event_id)
    assert [kind for kind, _, _ in of_late] == [
        "DispatchStarted",
        "DispatchFailed",
        "RetryScheduled",
        "DispatchStarted",
        "DispatchSucceeded",
    ]
    waited_ms = of_late[3][2] - of_late[2][2]
    assert RETRY_MS <= waited_ms < RETRY_MS + 2_500


async def test_sigkill_of_the_pump(temporal_client, make_package, harness, worker):
    package = make_package(LIB, harness.trigger("fails_once", harness.FAST))
    log = package.log

    async def ended(count):
        async def succeeded():
            records = await log.read("trigger.outbox")
            return sum(record.kind == "dispatch_succeeded" for record in records) >= count

        await harness.until(succeeded)

    async with worker(package, pump="pump") as first:
        await package.ingest(harness.event({"n": 1}))
        await ended(1)
        first.kill()
        await first.wait()
    await package.ingest(harness.event({"n": 2}))
    async with worker(package, pump="pump"):
        await ended(2)
    kinds = Counter(r.kind for r in await log.read("trigger.outbox"))
    assert kinds == {"dispatch_started": 4, "dispatch_failed": 2, "dispatch_succeeded": 2}
