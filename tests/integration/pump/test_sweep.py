"""Dispatches whose workflow is gone without a word get their end in the log."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from harn_temporal.activities.sweep import Sweep
from harn_temporal.headers import OUTCOME, WORKFLOW_ID
from harn_temporal.pump_figures import PumpFigures
from harn_temporal.worker import WorkerOptions, running_worker

LIB = """
import asyncio

def fails(event):
    raise ValueError("not today")

async def hangs(event):
    await asyncio.Event().wait()
"""
LATER = 'retry = { max = 3, backoff = "linear", delay_ms = 3600000 }'
OPTIONS = WorkerOptions(sweep_interval=timedelta(milliseconds=200))


async def ended(log, topic="trigger.outbox"):
    return [record for record in await log.read(topic) if OUTCOME in record.headers]


async def lifecycle(log):
    records = await log.read("triggers.lifecycle")
    return [record.kind for record in records if record.kind != "state_transition"]


@pytest.fixture
def swept(harness):
    """Waits for the one outcome that the sweep appends."""

    async def wait(log):
        async def found():
            return await ended(log)

        [record] = await harness.until(found)
        return record

    return wait


async def test_terminated_in_a_retry_wait(temporal_client, make_package, harness, swept):
    package = make_package(LIB, harness.trigger("fails", LATER))
    log = package.log
    [taken] = await package.ingest(harness.event({"n": 1}))
    handle = temporal_client.get_workflow_handle(taken.workflow_id)
    async with running_worker(temporal_client, log, package.manifest, OPTIONS) as worker:

        async def waits():
            return "RetryScheduled" in await lifecycle(log)

        await harness.until(waits)
        await handle.terminate("by hand")
        record = await swept(log)

        async def completed():
            return worker.pump.completed == 1 and worker.pump.swept == 1

        await harness.until(completed)
    assert (record.kind, record.headers[OUTCOME]) == ("dispatch_failed", "cancelled")
    assert (record.payload["error"], record.payload["attempt"]) == ("terminated", 2)
    assert record.headers[WORKFLOW_ID] == taken.workflow_id
    assert await lifecycle(log) == [
        "DispatchStarted",
        "DispatchFailed",
        "RetryScheduled",
        "DispatchFailed",
    ]
    assert len(await log.read("trigger.attempts")) == 2
    last = (await log.read("orchestrator.lifecycle"))[-1]
    assert (last.kind, last.payload["status"], last.payload["error"]) == (
        "pump_dispatch_completed",
        "cancelled",
        "terminated",
    )


async def test_terminated_in_an_attempt(temporal_client, make_package, harness, swept):
    package = make_package(LIB, harness.trigger("hangs"))
    log = package.log
    [taken] = await package.ingest(harness.event({"n": 1}, tenant_id=None))
    handle = temporal_client.get_workflow_handle(taken.workflow_id)
    async with running_worker(temporal_client, log, package.manifest, OPTIONS):

        async def runs():
            return "DispatchStarted" in await lifecycle(log)

        await harness.until(runs)
        await handle.terminate()
        record = await swept(log)
    assert (record.headers[OUTCOME], record.payload["error"]) == ("cancelled", "terminated")
    [attempt] = await log.read("trigger.attempts")
    assert (attempt.payload["attempt"], attempt.payload["outcome"]) == (1, "cancelled")
    assert attempt.payload["error_msg"] == "terminated"
    # What the handler's worker says afterwards about the attempt changes nothing.
    assert await lifecycle(log) == ["DispatchStarted", "DispatchFailed"]


async def test_terminated_before_it_began(temporal_client, make_lab, harness, swept):
    lab = make_lab(harness.trigger("fails"), lib=LIB)
    log = lab.log
    started = []
    manifest = lab.package.manifest
    options = WorkerOptions(pump=False)
    async with running_worker(temporal_client, log, manifest, options):
        pass  # its search attributes and bindings are registered
    from harn_temporal.temporal.starter import start_dispatch

    async def start(request):
        started.append((await start_dispatch(temporal_client, log, request)).handle)

    await lab.send(1)
    async with lab.running(await lab.make(start=start)):

        async def passed():
            return await lab.cursor() == 1

        await harness.until(passed)
    await started[0].terminate()
    async with running_worker(temporal_client, log, manifest, OPTIONS):
        record = await swept(log)
    assert record.payload["error"] == "terminated"
    assert await log.read("trigger.attempts") == []


class Lives:
    """What Temporal says of every workflow."""

    def __init__(self, life):
        self.life = life
        self.asked = []

    async def __call__(self, workflow_id):
        self.asked.append(workflow_id)
        return self.life


@pytest.fixture
def sweep_of(lab):
    async def make(life, releases=()):
        pump = await lab.make()
        return Sweep(lab.log, life, pump._admissions._envelopes, PumpFigures(64), releases=releases)

    return make


async def test_what_is_open_or_not_begun_is_left_alone(lab, sweep_of):
    await lab.send(3)
    open_ = Lives("open")
    assert await (await sweep_of(open_)).once() == 0
    assert open_.asked == []  # nothing was admitted yet
    async with lab.running(await lab.make()):
        await lab.until_started(3)
        await lab.harness.until(lambda: _at(lab, 3))
    assert await (await sweep_of(open_)).once() == 0
    assert len(open_.asked) == 3


async def test_an_admission_under_way_is_not_taken_for_forgotten(lab, sweep_of):
    await lab.send(1)
    reached = asyncio.Event()

    async def hang(request):
        reached.set()
        await asyncio.Event().wait()

    pump = await lab.make(start=hang)
    running = asyncio.create_task(pump.run(asyncio.Event(), lifetime_s=60))
    await asyncio.wait_for(reached.wait(), 10)
    sweep = await sweep_of(Lives("unknown"))
    assert await sweep.once() == 0
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await lab.log.read("trigger.outbox") == []


async def test_a_dispatch_that_starts_while_temporal_is_asked_is_not_taken_for_forgotten(
    lab, sweep_of
):
    await lab.send(1)
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def start(request):
        reached.set()
        await go_on.wait()

    async def asked_too_early(workflow_id):
        go_on.set()
        await lab.harness.until(lambda: _at(lab, 1))
        return "unknown"  # as it was when Temporal looked

    async with lab.running(await lab.make(start=start)):
        await asyncio.wait_for(reached.wait(), 10)
        assert await (await sweep_of(asked_too_early)).once() == 0
    assert await lab.log.read("trigger.outbox") == []


async def test_what_a_swept_dispatch_holds_is_released_with_its_end(lab, sweep_of):
    await lab.send(2)
    async with lab.running(await lab.make()):
        await lab.until_started(2)
        await lab.harness.until(lambda: _at(lab, 2))
    await lab.end_attempt(lab.started[0])
    released = []

    def release(tx, workflow_id):
        released.append((workflow_id, tx.inbox.outcome(workflow_id).status))

    sweep = await sweep_of(Lives("closed"), [release])
    assert (await sweep.once(), await sweep.once()) == (1, 0)
    assert released == [(f"dispatch/demo/on-push/{lab.started[1].event_id}", "cancelled")]
    assert await lab.outstanding() == 0


async def _at(lab, cursor):
    return await lab.cursor() == cursor
