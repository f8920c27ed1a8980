"""Durable requests to cancel, at every stage of a dispatch, with the pump and a real worker."""

from __future__ import annotations

import asyncio

import pytest
from temporalio.service import RPCError, RPCStatusCode

from harn_temporal.headers import OUTCOME, WORKFLOW_ID
from harn_temporal.inspection.graph import event_graph
from harn_temporal.naming import cancel_consumer
from harn_temporal.worker import running_worker

BOUND_S = 25.0
LONG = 'retry = { max = 3, backoff = "linear", delay_ms = 3600000 }'
TOPIC = "trigger.cancel.requests"
REQUESTED = "dispatch_cancel_requested"


def request(event, binding_key="on-push@v1"):
    """As Harn writes it."""
    return {
        "binding_key": binding_key,
        "event_id": event.id,
        "requested_at": "2026-01-01T00:00:00.123456789Z",
        "requested_by": "ada",
        "audit_id": None,
    }


async def kinds(log, topic="trigger.outbox"):
    return [record.kind for record in await log.read(topic)]


async def test_before_admission_nothing_of_it_starts(temporal_client, make_package, triggers):
    package = make_package(triggers.one("succeeds"))
    event, _ = await package.ingest()
    await package.append_by_sql(TOPIC, REQUESTED, request(event))
    async with running_worker(temporal_client, package.log, package.manifest):
        [end] = (await package.ended()).values()
    assert (end.kind, end.headers[OUTCOME]) == ("dispatch_failed", "cancelled")
    assert (end.payload["attempt"], end.payload["error"]) == (1, "cancelled")
    assert await kinds(package.log) == ["dispatch_failed"]
    assert await package.log.read("trigger.attempts") == []
    assert list(package.folder.glob("ran-*")) == []


async def test_the_outcome_of_one_that_never_started_counts_no_attempt(
    temporal_client, make_package, triggers
):
    package = make_package(triggers.one("succeeds"))
    event, taken = await package.ingest()
    await package.append_by_sql(TOPIC, REQUESTED, request(event))
    # Passed by who acts on requests, as one is that comes between an admission and its workflow.
    await package.log.transact(lambda tx: tx.ack(TOPIC, cancel_consumer("demo"), 1))
    async with running_worker(temporal_client, package.log, package.manifest):
        await package.ended()
        handle = temporal_client.get_workflow_handle(taken.workflow_id)
        outcome = await handle.result()
    assert (outcome["status"], outcome["attempt_count"]) == ("cancelled", 0)


async def test_behind_a_full_pump_it_ends_without_waiting_for_room(
    temporal_client, make_package, triggers
):
    package = make_package(
        triggers.one("runs_async", 'when = "true"'),
        orchestrator="pumps.max_outstanding = 1",
    )
    first, taken = await package.ingest()
    async with running_worker(temporal_client, package.log, package.manifest):
        await package.exists("begun")
        last, behind = await package.ingest(tenant_id="acme")
        await package.append_by_sql(TOPIC, REQUESTED, request(last, "on-push@v9"))
        await package.append_by_sql(TOPIC, REQUESTED, request(last))
        [end] = (await package.ended()).values()
        assert end.headers[WORKFLOW_ID] == behind.workflow_id
        assert (end.kind, end.headers[OUTCOME]) == ("dispatch_failed", "cancelled")
        assert (end.payload["attempt"], end.payload["error"]) == (1, "cancelled")
        assert end.topic == "tenant.acme.trigger.outbox"
        graph = await event_graph(package.log, last.id)
        assert [node["kind"] for node in graph.merged.nodes.values()] == ["trigger", "dispatch"]
        pumped = await kinds(package.log, "orchestrator.lifecycle")
        assert pumped.count("pump_received") == 1  # of the first: there was no room
        await package.append_by_sql(TOPIC, REQUESTED, request(first))
        assert (await package.statuses(2)) == ["cancelled", "cancelled"]

        async def passed():
            found = await kinds(package.log, "orchestrator.lifecycle")
            return found.count("pump_dispatch_completed") == 2

        await package.until(passed)
    # The pump came to it, found it ended, and started no workflow.
    assert not await exists(temporal_client, behind.workflow_id)
    assert await exists(temporal_client, taken.workflow_id)


async def exists(client, workflow_id):
    try:
        await client.get_workflow_handle(workflow_id).describe()
    except RPCError as error:
        assert error.status == RPCStatusCode.NOT_FOUND  # noqa: PT017 - another status is a failure
        return False
    return True


async def test_before_admission_the_predicate_is_not_asked(temporal_client, make_package, triggers):
    package = make_package(triggers.one("succeeds", 'when = "handlers::decides_slowly"'))
    event, _ = await package.ingest()
    await package.append_by_sql(TOPIC, REQUESTED, request(event))
    async with running_worker(temporal_client, package.log, package.manifest):
        assert await package.statuses() == ["cancelled"]
    assert not (package.folder / "asked").exists()


async def test_while_the_predicate_is_asked(temporal_client, make_package, triggers):
    package = make_package(triggers.one("succeeds", 'when = "handlers::decides_slowly"'))
    event, _ = await package.ingest()
    async with running_worker(temporal_client, package.log, package.manifest):
        await package.exists("asked")
        await package.append_by_sql(TOPIC, REQUESTED, request(event))
        async with asyncio.timeout(BOUND_S):
            assert await package.statuses() == ["cancelled"]
    assert list(package.folder.glob("ran-*")) == []


@pytest.mark.parametrize("handler", ["runs_async", "runs_def"])
async def test_in_an_attempt(temporal_client, make_package, triggers, handler):
    package = make_package(triggers.one(handler))
    event, _ = await package.ingest()
    async with running_worker(temporal_client, package.log, package.manifest):
        await package.exists("begun")
        await package.append_by_sql(TOPIC, REQUESTED, request(event))
        async with asyncio.timeout(BOUND_S):
            assert await package.statuses() == ["cancelled"]
    assert (package.folder / "told").exists()
    [attempt] = await package.log.read("trigger.attempts")
    assert attempt.payload["outcome"] == "cancelled"
    assert await kinds(package.log) == ["dispatch_started", "dispatch_failed"]


async def test_in_a_retry_wait(temporal_client, make_package, triggers):
    package = make_package(triggers.one("fails", LONG))
    event, _ = await package.ingest()
    async with running_worker(temporal_client, package.log, package.manifest):
        await package.waits_for_retry()
        await package.append_by_sql(TOPIC, REQUESTED, request(event))
        async with asyncio.timeout(BOUND_S):
            assert await package.statuses() == ["cancelled"]
    assert await kinds(package.log) == ["dispatch_started", *["dispatch_failed"] * 2]
    assert await kinds(package.log, "trigger.attempts") == ["attempt_recorded", "retry_scheduled"]


async def test_while_no_worker_was_there(temporal_client, make_package, triggers):
    """The request waits with its dispatch; the next worker acts on it."""
    package = make_package(triggers.one("fails", LONG))
    event, _ = await package.ingest()
    async with running_worker(temporal_client, package.log, package.manifest):
        await package.waits_for_retry()
    await package.append_by_sql(TOPIC, REQUESTED, request(event))
    async with running_worker(temporal_client, package.log, package.manifest):
        async with asyncio.timeout(BOUND_S):
            assert await package.statuses() == ["cancelled"]


async def test_after_its_end_nothing_happens(temporal_client, make_package, triggers):
    package = make_package(triggers.one("succeeds"))
    event, _ = await package.ingest()
    async with running_worker(temporal_client, package.log, package.manifest):
        assert await package.statuses() == ["succeeded"]
        await package.append_by_sql(TOPIC, REQUESTED, request(event))
        await acted_on(package, 1)
    assert await package.statuses() == ["succeeded"]
    assert await kinds(package.log) == ["dispatch_started", "dispatch_succeeded"]


async def test_what_is_no_request_and_what_is_another_s_is_passed_over(
    temporal_client, make_package, triggers
):
    package = make_package(triggers.one("fails", LONG))
    event, _ = await package.ingest()
    async with running_worker(temporal_client, package.log, package.manifest):
        await package.waits_for_retry()
        for kind, payload in (
            (REQUESTED, {"binding_key": "on-push@v1"}),
            (REQUESTED, ["none"]),
            ("something_else", request(event)),
            (REQUESTED, request(event, "on-push@v2")),
            (REQUESTED, request(event, "on-push")),
            (REQUESTED, request(event, "another@v1")),
        ):
            await package.append_by_sql(TOPIC, kind, payload)
        await acted_on(package, 6)
        assert await kinds(package.log) == ["dispatch_started", "dispatch_failed"]
        await package.append_by_sql(TOPIC, REQUESTED, request(event))
        assert await package.statuses() == ["cancelled"]


async def test_another_version_is_not_meant(temporal_client, make_package, triggers):
    package = make_package(triggers.one("fails", LONG))
    event, taken = await package.ingest()
    async with running_worker(temporal_client, package.log, package.manifest):
        await package.waits_for_retry()
    package.change(triggers.one("fails", LONG, 'timeout = "1m"'))
    async with running_worker(temporal_client, package.log, package.manifest):
        await package.append_by_sql(TOPIC, REQUESTED, request(event, "on-push@v2"))
        await acted_on(package, 1)
        handle = temporal_client.get_workflow_handle(taken.workflow_id)
        events = (await handle.fetch_history()).events
        told = "workflow_execution_cancel_requested_event_attributes"
        assert not any(each.HasField(told) for each in events)
        await package.append_by_sql(TOPIC, REQUESTED, request(event, "on-push@v1"))
        assert await package.statuses() == ["cancelled"]


async def test_a_request_is_not_for_replays(temporal_client, make_package, triggers):
    package = make_package(triggers.one("succeeds"))
    event, _ = await package.ingest()
    await package.append_by_sql(TOPIC, REQUESTED, request(event))
    async with running_worker(temporal_client, package.log, package.manifest):
        assert await package.statuses() == ["cancelled"]
        ran = await package.run("trigger", "replay", event.id, "--json")
        assert ran.code == 0, ran.err
        assert sorted(await package.statuses(2)) == ["cancelled", "succeeded"]


async def acted_on(package, last):
    async def passed():
        consumer = cancel_consumer("demo")
        return await package.log.query(lambda reader: reader.cursor(TOPIC, consumer)) == last

    await package.until(passed)
