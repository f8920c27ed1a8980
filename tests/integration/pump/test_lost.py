"""Dispatches whose workflow Temporal has lost: noted, told of, and brought back by `recover`."""

from __future__ import annotations

from datetime import timedelta

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest

from harn_temporal.activities.sweep import Sweep
from harn_temporal.eventlog.records import Append
from harn_temporal.headers import OUTCOME, WORKFLOW_ID
from harn_temporal.pump_figures import PumpFigures
from harn_temporal.recovery.recover import recover
from harn_temporal.recovery.stranded import note_stranded, stranded_envelopes
from harn_temporal.worker import WorkerOptions, running_worker

LIB = """
def fails_once(event, context):
    if context.attempt == 1:
        raise ValueError("not today")
    return context.attempt


def counts_at_last(event, context):
    if context.attempt == 1:
        raise ValueError("not today")
    return sorted(each["provider_payload"]["raw"]["n"] for each in event.batch)
"""
SOON = 'retry = { max = 3, backoff = "linear", delay_ms = 1500 }'
OPTIONS = WorkerOptions(sweep_interval=timedelta(milliseconds=200))


async def unknown(workflow_id):
    return "unknown"


async def kinds(log, topic="orchestrator.lifecycle"):
    return [record.kind for record in await log.read(topic)]


async def lost(log):
    found = await log.query(lambda reader: stranded_envelopes(reader, "demo"))
    return [(each.event_id, each.attempts) for each in found if each.lost]


@pytest.fixture
def sweep_of(lab):
    async def make(life=unknown):
        pump = await lab.make()
        return Sweep(lab.log, life, pump._admissions._envelopes, PumpFigures(64))

    return make


@pytest.fixture
def passed(lab):
    """Has events pass a pump whose starts lead nowhere; their ids."""

    async def make(count, **options):
        sent = await lab.send(count)
        async with lab.running(await lab.make(**options)):

            async def through():
                return await lab.cursor() == await lab.log.query(
                    lambda reader: reader.head("trigger.inbox.envelopes")
                )

            await lab.harness.until(through)
        return sent

    return make


async def lost_in_a_retry_wait(client, harness, package):
    """Has Temporal forget the workflow whose first attempt failed, and recovers it; how it ends."""
    log = package.log

    async def waits():
        return "RetryScheduled" in await kinds(log, "triggers.lifecycle")

    async def ended():
        found = await log.read("trigger.outbox")
        return [
            each
            for each in found
            if each.headers.get(WORKFLOW_ID) == workflow_id and OUTCOME in each.headers
        ]

    async with running_worker(client, log, package.manifest, OPTIONS):
        await harness.until(waits)
        [workflow_id] = [
            each.headers[WORKFLOW_ID]
            for each in await log.read("trigger.outbox")
            if each.kind == "dispatch_failed"
        ]
        await client.workflow_service.delete_workflow_execution(
            DeleteWorkflowExecutionRequest(
                namespace="default",
                workflow_execution=WorkflowExecution(workflow_id=workflow_id),
            )
        )
        assert [attempts for _, attempts in await harness.until(lambda: lost(log))] == [1]
        recovery = await recover(log, "demo", older_than_ms=0, dry_run=False)
        assert recovery.readmitted == 1
        [end] = await harness.until(ended)
    return end.headers[OUTCOME], end.payload["result"]


async def test_it_goes_on_after_the_attempts_that_ended(temporal_client, make_package, harness):
    package = make_package(LIB, harness.trigger("fails_once", SOON))
    await package.ingest(harness.event({"n": 1}))
    end = await lost_in_a_retry_wait(temporal_client, harness, package)
    assert end == ("succeeded", 2)
    records = await package.log.read("trigger.attempts")
    attempts = [record.payload for record in records if record.kind == "attempt_recorded"]
    assert [(each["attempt"], each["outcome"]) for each in attempts] == [
        (1, "failed"),
        (2, "success"),
    ]


async def test_it_goes_on_for_the_batch_that_it_led(temporal_client, make_package, harness):
    batch = 'batch = { size = 2, timeout = "1h" }'
    package = make_package(LIB, harness.trigger("counts_at_last", SOON, batch))
    await package.ingest(harness.event({"n": 1}))
    await package.ingest(harness.event({"n": 2}))
    end = await lost_in_a_retry_wait(temporal_client, harness, package)
    assert end == ("succeeded", [1, 2])


async def test_one_that_never_ran_is_noted_once_and_ends_not(lab, sweep_of, passed):
    sent = await passed(2)
    sweep = await sweep_of()
    assert (await sweep.once(), await sweep.once()) == (0, 0)
    assert await lost(lab.log) == [(event_id, 0) for event_id in sent]
    assert (await kinds(lab.log)).count("dispatch_lost") == 2
    assert await lab.log.read("trigger.outbox") == []
    found = await note_stranded(lab.log, "demo", max_outstanding=64, older_than_ms=0)
    assert (found.passed, found.waiting) == (2, 0)


async def test_what_is_lost_takes_no_place_until_it_is_recovered(lab, sweep_of, passed):
    await passed(2, max_outstanding=2)
    await (await sweep_of()).once()
    assert await lab.outstanding() == 0
    await passed(2, max_outstanding=2)
    assert len(lab.started) == 4
    figures = await lab.log.query(lambda reader: reader.dispatches.figures())
    assert (figures.in_flight, figures.retrying, figures.admitted) == (0, 0, 2)


async def test_recovered_once_and_started_once_more(lab, sweep_of, passed):
    [sent] = await passed(1)
    await (await sweep_of()).once()
    for readmitted in (1, 0):
        recovery = await recover(lab.log, "demo", older_than_ms=0, dry_run=False)
        assert recovery.readmitted == readmitted
    audits = [r.payload for r in await lab.log.read("trigger.operations.audit")]
    assert [each["latest_status"] for each in audits[0]["targets"]] == ["lost"]
    # Temporal knows no workflow yet, and the pump has still to start it.
    assert await (await sweep_of()).once() == 0
    assert await lost(lab.log) == []
    async with lab.running(await lab.make()):
        assert await lab.until_started(2) == [sent, sent]
    assert lab.started[1].resume is None
    # And lost again, it is found again.
    await lab.harness.until(lambda: _at(lab, 2))
    await (await sweep_of()).once()
    assert await lost(lab.log) == [(sent, 0)]


async def test_the_rest_of_a_wait_is_waited(lab, sweep_of, passed):
    await passed(1)
    failed = {"status": "failed", "error": "no", "error_class": "unknown"}
    await lab.end_attempt(lab.started[0], final=None, retry_in_ms=3_600_000, **failed)
    await (await sweep_of()).once()
    await recover(lab.log, "demo", older_than_ms=0, dry_run=False)
    async with lab.running(await lab.make()):
        await lab.until_started(2)
    resume = lab.started[1].resume
    assert (resume.attempt, resume.status, resume.error, resume.final) == (1, "failed", "no", None)
    assert 3_000_000 < resume.retry_in_ms <= 3_600_000


async def test_what_is_recovered_waits_for_room_like_others(lab, sweep_of, passed):
    """The first waits for a retry, so it takes no place of the two; the others do."""
    sent = await passed(4)
    failed = {"status": "failed", "error": "no", "error_class": "unknown"}
    await lab.end_attempt(lab.started[0], final=None, retry_in_ms=3_600_000, **failed)
    await (await sweep_of()).once()
    await recover(lab.log, "demo", older_than_ms=0, dry_run=False)
    assert await lab.outstanding() == 0
    async with lab.running(await lab.make(max_outstanding=2)):
        assert await lab.until_started(7) == [*sent, *sent[:3]]
        assert await lab.outstanding() == 2
        await lab.end_attempt(lab.started[5])
        assert await lab.until_started(8) == [*sent, *sent]
    assert (await kinds(lab.log)).count("pump_admitted") == 8


async def test_a_lost_one_that_was_to_be_cancelled_ends(lab, sweep_of, passed):
    [sent] = await passed(1)
    sweep = await sweep_of()
    await sweep.once()
    request = {"binding_key": "on-push@v1", "event_id": sent}
    await lab.log.append([Append("trigger.cancel.requests", "dispatch_cancel_requested", request)])
    assert await sweep.once() == 1
    [end] = await lab.log.read("trigger.outbox")
    assert (end.headers[OUTCOME], end.payload["error"]) == ("cancelled", "cancelled")
    assert await lost(lab.log) == []


async def test_one_that_closed_after_all_ends(lab, sweep_of, passed):
    """The worker was at another service for a while."""
    await passed(1)
    await (await sweep_of()).once()

    async def closed(workflow_id):
        return "closed"

    assert await (await sweep_of(closed)).once() == 1
    [end] = await lab.log.read("trigger.outbox")
    assert (end.headers[OUTCOME], end.payload["error"]) == ("cancelled", "terminated")


async def _at(lab, cursor):
    return await lab.cursor() == cursor
