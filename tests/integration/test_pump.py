"""The pump: it starts a dispatch for each envelope of its package, once."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

import pytest
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from harn_temporal.activities.envelopes import Envelopes
from harn_temporal.activities.pump_intake import CHUNK
from harn_temporal.activities.pump_loop import Pump
from harn_temporal.contracts import PumpRequest
from harn_temporal.errors import TemporalUnavailableError
from harn_temporal.eventlog.records import Append
from harn_temporal.eventlog.topics import INBOX_ENVELOPES
from harn_temporal.headers import OUTCOME, PACKAGE
from harn_temporal.manifest import load_manifest
from harn_temporal.naming import control_queue, pump_consumer, pump_workflow_id, task_queue
from harn_temporal.pump_figures import PumpFigures
from harn_temporal.temporal.starter import start_dispatch
from harn_temporal.worker import WorkerOptions, running_worker

LIB = """
def handle(event):
    return event.raw["n"]
"""


@pytest.fixture
def ended(harness):
    """Waits until so many dispatches have ended; gives their outbox records by event id."""

    async def wait(log, count, *topics):
        async def all_ended():
            found = {}
            for topic in topics or ("trigger.outbox",):
                for record in await log.read(topic):
                    if OUTCOME in record.headers:
                        assert record.headers["event_id"] not in found
                        found[record.headers["event_id"]] = record
            return found if len(found) >= count else None

        return await harness.until(all_ended)

    return wait


def envelope(payload, package="demo"):
    return Append(INBOX_ENVELOPES, "event_ingested", payload, {PACKAGE: package})


async def test_what_is_ingested_is_dispatched(temporal_client, make_package, harness, ended):
    package = make_package(LIB, harness.trigger("handle"))
    log = package.log
    before = await package.ingest(harness.event({"n": 1}))
    async with running_worker(temporal_client, log, package.manifest):
        found = await ended(log, 1)
        after = await package.ingest(harness.event({"n": 2}))
        found = await ended(log, 2)
        cursor = await log.query(lambda r: r.consumer(INBOX_ENVELOPES, pump_consumer("demo")))
    assert {record.payload["result"] for record in found.values()} == {1, 2}
    assert found.keys() == {before[0].event_id, after[0].event_id}
    assert cursor is not None
    assert cursor.cursor <= 2


async def test_two_tenants_and_a_malformed_envelope(
    temporal_client, make_package, harness, ended, caplog
):
    package = make_package(LIB, harness.trigger("handle"))
    log = package.log
    await log.append(
        [
            envelope({"trigger_id": "on-push", "binding_version": 1, "event": {"id": 5}}),
            envelope(["no", "object"]),
            envelope({"trigger_id": "gone", "binding_version": 9, "event": None}),
        ]
    )
    foreign = harness.event({"n": 99})
    await log.append(
        [
            Append(
                INBOX_ENVELOPES,
                "event_ingested",
                {"trigger_id": "on-push", "binding_version": 1, "event": foreign.to_json()},
            )
        ]
    )
    sent = {}
    for n, tenant in enumerate(["acme", "beta", None, "acme", "beta"]):
        [taken] = await package.ingest(harness.event({"n": n}, tenant_id=tenant))
        sent[taken.event_id] = n
    topics = ["trigger.outbox", "tenant.acme.trigger.outbox", "tenant.beta.trigger.outbox"]
    with caplog.at_level(logging.ERROR, "harn_temporal.pump"):
        async with running_worker(temporal_client, log, package.manifest):
            found = await ended(log, 5, *topics)
    assert {event_id: record.payload["result"] for event_id, record in found.items()} == sent
    reported = [r for r in caplog.records if r.name == "harn_temporal.pump"]
    assert sorted((r.msg, r.topic, r.offset) for r in reported) == [
        ("envelope_malformed", INBOX_ENVELOPES, offset) for offset in (1, 2, 3)
    ]


async def test_more_than_a_chunk(temporal_client, make_package, harness, ended):
    package = make_package(LIB, harness.trigger("handle"))
    log = package.log
    count = CHUNK + 3
    for n in range(count):
        await package.ingest(harness.event({"n": n}))
    async with running_worker(temporal_client, log, package.manifest):
        found = await ended(log, count)
    assert {record.payload["result"] for record in found.values()} == set(range(count))


async def test_two_packages_on_one_store(temporal_client, make_package, harness, ended):
    first = make_package(LIB, harness.trigger("handle"), package="first")
    second = make_package(
        "def handle(event):\n    return -event.raw['n']\n",
        harness.trigger("handle"),
        package="second",
    )
    log = first.log
    event = harness.event({"n": 4})
    other = harness.event({"n": 5})
    await first.ingest(event)
    await second.ingest(other)
    async with (
        running_worker(temporal_client, log, first.manifest) as worker,
        running_worker(temporal_client, log, second.manifest) as other_worker,
    ):
        found = await ended(log, 2)
    assert {key: record.payload["result"] for key, record in found.items()} == {
        event.id: 4,
        other.id: -5,
    }
    assert [worker.bindings[0].binding_key, other_worker.bindings[0].binding_key] == [
        "on-push@v1",
        "on-push@v2",
    ]


async def test_a_dispatch_ends_under_the_version_it_was_accepted_under(
    temporal_client, make_package, harness, ended
):
    old = make_package(LIB + "def older(event):\n    return 'old'\n", harness.trigger("older"))
    await old.ingest(harness.event({"n": 1}))
    text = old.manifest.path.read_text()
    old.manifest.path.write_text(text.replace("handlers::older", "handlers::handle"))
    manifest = load_manifest(old.manifest.path)
    async with running_worker(temporal_client, old.log, manifest) as worker:
        [record] = (await ended(old.log, 1)).values()
    assert worker.bindings[0].version == 2
    assert record.payload["binding_key"] == "on-push@v1"
    assert record.payload["result"] == "old"


def make_pump(package, start):
    envelopes = Envelopes(
        store_id=package.log.store_id,
        package="demo",
        current={},
        search_attributes=True,
        heartbeat_timeout_ms=30_000,
    )
    return Pump(package.log, start, envelopes, PumpFigures(64))


async def test_killed_between_the_start_and_the_cursor(
    temporal_client, make_package, harness, ended
):
    """The envelopes are read again; their dispatches run once all the same."""
    package = make_package(LIB, harness.trigger("handle"))
    log = package.log
    for n in (1, 2):
        await package.ingest(harness.event({"n": n}))
    first_started = asyncio.Event()

    async def start_and_hang(request):
        await start_dispatch(temporal_client, log, request)
        first_started.set()
        await asyncio.Event().wait()

    killed = asyncio.create_task(
        make_pump(package, start_and_hang).run(asyncio.Event(), lifetime_s=60)
    )
    await asyncio.wait_for(first_started.wait(), 10)
    killed.cancel()
    with pytest.raises(asyncio.CancelledError):
        await killed
    assert await log.query(lambda r: r.cursor(INBOX_ENVELOPES, pump_consumer("demo"))) == 0
    async with running_worker(temporal_client, log, package.manifest):
        found = await ended(log, 2)

        async def passed():
            return await log.query(lambda r: r.cursor(INBOX_ENVELOPES, pump_consumer("demo"))) == 2

        await harness.until(passed)
    assert {record.payload["result"] for record in found.values()} == {1, 2}
    starts = [r for r in await log.read("trigger.outbox") if r.kind == "dispatch_started"]
    assert len(starts) == 2


async def test_only_what_was_admitted_is_passed(make_package, harness):
    package = make_package(LIB, harness.trigger("handle"))
    log = package.log
    sent = [(await package.ingest(harness.event({"n": n})))[0].event_id for n in range(4)]
    stop = asyncio.Event()
    calls = []

    async def start(request):
        calls.append(request.event_id)
        if request.event_id == sent[2] and calls.count(sent[2]) == 1:
            stop.set()
            raise TemporalUnavailableError("gone")

    pump = make_pump(package, start)
    await pump.run(stop, lifetime_s=5)
    cursor = await log.query(lambda r: r.cursor(INBOX_ENVELOPES, pump_consumer("demo")))
    assert cursor == 2

    stop.clear()
    report = await pump.run(stop, lifetime_s=0.2)
    assert calls[4:] == sent[2:]
    assert (report.started, report.malformed) == (2, 0)
    cursor = await log.query(lambda r: r.cursor(INBOX_ENVELOPES, pump_consumer("demo")))
    assert cursor == 4


async def test_the_pump_of_the_next_worker_goes_on(temporal_client, make_package, harness, ended):
    package = make_package(LIB, harness.trigger("handle"))
    log = package.log
    for n in (1, 2):
        [taken] = await package.ingest(harness.event({"n": n}))
        async with running_worker(temporal_client, log, package.manifest):
            assert taken.event_id in await ended(log, n)
    workflow_id = pump_workflow_id(log.store_id, "demo")
    assert (await temporal_client.get_workflow_handle(workflow_id).describe()).status.name == (
        "RUNNING"
    )


async def test_a_pump_that_was_terminated_is_started_again(
    temporal_client, make_package, harness, ended
):
    """So is one that Temporal has lost: there is none by its id."""
    package = make_package(LIB, harness.trigger("handle"))
    log = package.log
    pump = temporal_client.get_workflow_handle(pump_workflow_id(log.store_id, "demo"))
    options = WorkerOptions(sweep_interval=timedelta(milliseconds=200))
    async with running_worker(temporal_client, log, package.manifest, options):
        first = (await pump.describe()).run_id
        await pump.terminate()

        async def runs_again():
            found = await pump.describe()
            return found.run_id != first and found.status == WorkflowExecutionStatus.RUNNING

        await harness.until(runs_again)
        [taken] = await package.ingest(harness.event({"n": 1}))
        assert taken.event_id in await ended(log, 1)


async def test_without_pump_nothing_is_started(temporal_client, make_package, harness):
    package = make_package(LIB, harness.trigger("handle"))
    log = package.log
    await package.ingest(harness.event({"n": 1}))
    async with running_worker(temporal_client, log, package.manifest, WorkerOptions(pump=False)):
        assert await log.read("trigger.outbox") == []
    with pytest.raises(RPCError) as caught:
        await temporal_client.get_workflow_handle(pump_workflow_id(log.store_id, "demo")).describe()
    assert caught.value.status == RPCStatusCode.NOT_FOUND


async def test_a_lifetime_ends_and_the_workflow_continues_as_new(
    temporal_client, make_package, harness, ended
):
    package = make_package(LIB, harness.trigger("handle"))
    log = package.log
    handle = await temporal_client.start_workflow(
        "PumpWorkflow",
        PumpRequest(
            store_id=log.store_id,
            package="demo",
            control_queue=control_queue(log.store_id, "demo"),
            lifetime_ms=50,
        ),
        id=pump_workflow_id(log.store_id, "demo"),
        task_queue=task_queue(log.store_id, "demo"),
    )
    async with running_worker(temporal_client, log, package.manifest):

        async def in_a_later_run():
            description = await temporal_client.get_workflow_handle(handle.id).describe()
            return description.run_id != handle.first_execution_run_id

        await harness.until(in_a_later_run)
        [taken] = await package.ingest(harness.event({"n": 1}))
        assert taken.event_id in await ended(log, 1)
    await temporal_client.get_workflow_handle(handle.id).terminate()
