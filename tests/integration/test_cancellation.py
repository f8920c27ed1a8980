"""Cancelling a dispatch: wherever it is, it ends at once and in its records."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from harn_temporal import headers
from harn_temporal.errors import StoreUnavailableError
from harn_temporal.temporal.starter import start_dispatch
from harn_temporal.worker import WorkerOptions, running_worker

LIB = """
import asyncio
import pathlib
import time

def marker(event, name):
    pathlib.Path(event.raw["folder"], name).touch()

def fails(event):
    raise ValueError("once")

async def runs_async(event):
    marker(event, "begun")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        marker(event, "told")
        raise

async def fails_when_told(event):
    marker(event, "begun")
    while not pathlib.Path(event.raw["folder"], "go").exists():
        await asyncio.sleep(0.005)
    raise ValueError("on its own")

def runs_def(event, context):
    marker(event, "begun")
    while not context.cancelled:
        time.sleep(0.005)
    marker(event, "told")
"""

BOUND_S = 5.0


async def test_in_a_retry_wait(temporal_client, make_package, harness):
    package = make_package(LIB, harness.trigger("fails", 'retry = { backoff = "svix" }'))
    request = await package.request()
    log = package.log
    async with running_worker(temporal_client, log, package.manifest, WorkerOptions(pump=False)):
        started = await start_dispatch(temporal_client, log, request)

        async def waits():
            return (await harness.state(started.handle)).phase == "retry_wait"

        await harness.until(waits)
        await started.handle.cancel()
        async with asyncio.timeout(BOUND_S):
            outcome = await started.handle.result()
    assert (outcome.status, outcome.attempt_count, outcome.error) == ("cancelled", 1, "cancelled")
    outbox = await log.read("trigger.outbox")
    assert [r.kind for r in outbox] == ["dispatch_started", "dispatch_failed", "dispatch_failed"]
    assert [r.headers.get(headers.OUTCOME) for r in outbox] == [None, None, "cancelled"]
    attempts = await log.read("trigger.attempts")
    assert [r.kind for r in attempts] == ["attempt_recorded", "retry_scheduled"]


@pytest.mark.parametrize("handler", ["runs_async", "runs_def"])
async def test_in_a_running_handler(temporal_client, make_package, harness, tmp_path, handler):
    package = make_package(LIB, harness.trigger(handler))
    request = await package.request({"folder": str(tmp_path)})
    log = package.log
    async with running_worker(temporal_client, log, package.manifest, WorkerOptions(pump=False)):
        started = await start_dispatch(temporal_client, log, request)

        async def begun():
            return (tmp_path / "begun").exists()

        await harness.until(begun)
        await started.handle.cancel()
        async with asyncio.timeout(BOUND_S):
            outcome = await started.handle.result()
    assert (tmp_path / "told").exists()
    assert (outcome.status, outcome.attempt_count) == ("cancelled", 1)
    outbox = await log.read("trigger.outbox")
    assert [r.kind for r in outbox] == ["dispatch_started", "dispatch_failed"]
    assert outbox[1].headers[headers.OUTCOME] == "cancelled"
    [attempt] = await log.read("trigger.attempts")
    assert attempt.payload["outcome"] == "cancelled"
    assert await log.read("trigger.dlq") == []
    events = (await started.handle.fetch_history()).events
    assert sum(e.HasField("activity_task_scheduled_event_attributes") for e in events) == 1


async def test_a_failure_in_the_same_moment_is_not_retried(
    temporal_client, make_package, harness, tmp_path
):
    """The cancellation has reached the workflow, but not yet its attempt, which then fails."""
    package = make_package(LIB, harness.trigger("fails_when_told", 'retry = { backoff = "svix" }'))
    request = await package.request({"folder": str(tmp_path)})
    log = package.log
    async with running_worker(temporal_client, log, package.manifest, WorkerOptions(pump=False)):
        started = await start_dispatch(temporal_client, log, request)

        async def begun():
            return (tmp_path / "begun").exists()

        await harness.until(begun)
        await started.handle.cancel()
        (tmp_path / "go").touch()
        async with asyncio.timeout(4):  # less than the first retry's delay
            outcome = await started.handle.result()
    assert (outcome.status, outcome.attempt_count) == ("cancelled", 1)
    outbox = await log.read("trigger.outbox")
    assert outbox[-1].headers[headers.OUTCOME] == "cancelled"
    assert sum(record.kind == "dispatch_started" for record in outbox) == 1


async def test_before_any_worker_came(temporal_client, make_package, harness):
    package = make_package(LIB, harness.trigger("fails"))
    request = await package.request()
    log = package.log
    started = await start_dispatch(temporal_client, log, request)
    await started.handle.cancel()
    async with running_worker(temporal_client, log, package.manifest, WorkerOptions(pump=False)):
        async with asyncio.timeout(BOUND_S):
            outcome = await started.handle.result()
    assert (outcome.status, outcome.attempt_count) == ("cancelled", 0)
    [record] = await log.read("trigger.outbox")
    assert (record.kind, record.headers[headers.OUTCOME]) == ("dispatch_failed", "cancelled")
    assert await log.read("trigger.attempts") == []


@pytest.mark.parametrize("handler", ["runs_async", "runs_def"])
async def test_a_terminated_workflow_stops_its_handler_and_writes_nothing(
    temporal_client, make_package, harness, tmp_path, handler
):
    package = make_package(LIB, harness.trigger(handler))
    request = await package.request({"folder": str(tmp_path)})
    log = package.log

    async def exists(name):
        return (tmp_path / name).exists()

    async with running_worker(temporal_client, log, package.manifest, WorkerOptions(pump=False)):
        started = await start_dispatch(temporal_client, log, request)
        await harness.until(lambda: exists("begun"))
        await started.handle.terminate()
        await harness.until(lambda: exists("told"), BOUND_S)
    assert [r.kind for r in await log.read("trigger.outbox")] == ["dispatch_started"]
    assert await log.read("trigger.attempts") == []


async def test_a_worker_that_leaves_a_waiting_dispatch_writes_nothing(
    temporal_client, make_package, harness, caplog
):
    """Its workflow leaves the worker's cache, which must not look like a cancellation."""
    package = make_package(LIB, harness.trigger("fails", 'retry = { backoff = "svix" }'))
    request = await package.request()
    log = package.log
    async with running_worker(temporal_client, log, package.manifest, WorkerOptions(pump=False)):
        started = await start_dispatch(temporal_client, log, request)

        async def waits():
            return (await harness.state(started.handle)).phase == "retry_wait"

        await harness.until(waits)
    assert [r.kind for r in await log.read("trigger.outbox")] == [
        "dispatch_started",
        "dispatch_failed",
    ]
    assert [r.getMessage() for r in caplog.records] == ["attempt_failed"]
    await started.handle.terminate()


async def test_with_every_slot_taken_by_a_handler(temporal_client, make_package, harness, tmp_path):
    package = make_package(
        LIB,
        harness.trigger("runs_async"),
        harness.trigger("fails", 'retry = { backoff = "svix" }', trigger_id="waits"),
    )
    log = package.log
    waiting = await package.request(trigger_id="waits")
    running = await package.request({"folder": str(tmp_path)})
    options = WorkerOptions(pump=False, max_concurrent=1, grace=timedelta(0))
    async with running_worker(temporal_client, log, package.manifest, options):
        started = await start_dispatch(temporal_client, log, waiting)

        async def waits():
            return (await harness.state(started.handle)).phase == "retry_wait"

        await harness.until(waits)
        busy = await start_dispatch(temporal_client, log, running)

        async def begun():
            return (tmp_path / "begun").exists()

        await harness.until(begun)
        await started.handle.cancel()
        async with asyncio.timeout(BOUND_S):
            outcome = await started.handle.result()
        await busy.handle.terminate()
    assert (outcome.status, outcome.attempt_count) == ("cancelled", 1)


async def test_while_the_store_is_away(temporal_client, make_package, harness):
    """The cancellation is written as soon as the store can be reached again."""
    package = make_package(LIB, harness.trigger("fails", 'retry = { backoff = "svix" }'))
    request = await package.request()
    log = Away(package.log)
    async with running_worker(temporal_client, log, package.manifest, WorkerOptions(pump=False)):
        started = await start_dispatch(temporal_client, log, request)

        async def waits():
            return (await harness.state(started.handle)).phase == "retry_wait"

        await harness.until(waits)
        log.away = True
        await started.handle.cancel()

        async def tried():
            return log.refused >= 2  # once as a local activity, then as a normal one

        await harness.until(tried)
        log.away = False
        async with asyncio.timeout(20):
            outcome = await started.handle.result()
    assert outcome.status == "cancelled"
    scheduled = [
        event.activity_task_scheduled_event_attributes.activity_type.name
        for event in (await started.handle.fetch_history()).events
        if event.HasField("activity_task_scheduled_event_attributes")
    ]
    assert scheduled == ["run_attempt", "record_cancelled"]
    outbox = await package.log.read("trigger.outbox")
    assert outbox[-1].headers[headers.OUTCOME] == "cancelled"
    assert len(outbox) == 3


class Away:
    """An EventLog that refuses transactions while `away` is set."""

    def __init__(self, log):
        self._log = log
        self.away = False
        self.refused = 0

    def __getattr__(self, name):
        return getattr(self._log, name)

    async def transact(self, work):
        if self.away:
            self.refused += 1
            raise StoreUnavailableError("the disk is away")
        return await self._log.transact(work)
