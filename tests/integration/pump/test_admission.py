"""How the pump bounds what is outstanding, and what it writes down. Nothing here needs Temporal."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from harn_temporal.dedupe_figures import dropped
from harn_temporal.errors import DispatchRefusedError, TemporalUnavailableError
from harn_temporal.headers import PACKAGE, WORKFLOW_ID
from harn_temporal.pump_records import parked

TOPIC = "trigger.inbox.envelopes"


async def test_a_full_pump_stops_reading_and_goes_on_when_there_is_room(lab):
    sent = await lab.send(10)
    async with lab.running(await lab.make(max_outstanding=4)) as pump:
        assert await lab.until_started(4) == sent[:4]

        async def full():
            return pump.figures.full and pump.figures.outstanding == 4

        await lab.harness.until(full)
        assert (len(lab.started), await lab.cursor(), await lab.outstanding()) == (4, 4, 4)
        for request in lab.started[:2]:
            await lab.end_attempt(request)
        assert await lab.until_started(6) == sent[:6]
        await lab.harness.until(full)
        assert (len(lab.started), await lab.cursor()) == (6, 6)
        for request in lab.started[2:6]:
            await lab.end_attempt(request)
        await lab.until_started(10)
    assert Counter(request.event_id for request in lab.started) == dict.fromkeys(sent, 1)


async def test_what_waits_for_a_retry_or_is_parked_takes_no_place(lab):
    await lab.send(6)
    async with lab.running(await lab.make(max_outstanding=2)):
        await lab.until_started(2)
        await lab.end_attempt(
            lab.started[0], status="failed", error="no", final=None, retry_in_ms=36_000_000
        )
        await lab.until_started(3)
        waiting = f"dispatch/demo/on-push/{lab.started[1].event_id}"
        await lab.log.append([parked(waiting, "concurrency", now_ms=1)])
        await lab.until_started(4)
        assert await lab.outstanding() == 2


async def test_what_is_outstanding_survives_a_restart(lab):
    sent = await lab.send(8)
    async with lab.running(await lab.make(max_outstanding=3)):
        await lab.until_started(3)
    lab.started.clear()
    async with lab.running(await lab.make(max_outstanding=5)):
        await lab.until_started(2)
        assert await lab.outstanding() == 5
    assert [request.event_id for request in lab.started] == sent[3:5]


async def test_the_records_of_one_envelope(lab):
    [sent] = await lab.send(1)
    async with lab.running(await lab.make(max_outstanding=7)) as pump:
        await lab.until_started(1)
        await lab.end_attempt(lab.started[0])

        async def completed():
            return pump.figures.completed == 1

        await lab.harness.until(completed)
    place = {"topic": TOPIC, "event_log_id": 1}
    target = {"trigger_id": "on-push", "binding_version": 1, "trigger_event_id": sent}
    assert await lab.lifecycle() == [
        ("pump_received", place | {"outstanding": 0, "max_outstanding": 7}),
        ("pump_eligible", place | target),
        ("pump_admitted", place | target | {"outstanding_after_admit": 1, "max_outstanding": 7}),
        ("pump_dispatch_started", place | target),
        ("pump_acked", place | {"cursor": 1}),
        ("pump_dispatch_completed", place | {"status": "succeeded", "error": None}),
    ]
    records = await lab.log.read("orchestrator.lifecycle")
    assert {record.headers[PACKAGE] for record in records} == {"demo"}
    assert records[2].headers[WORKFLOW_ID] == f"dispatch/demo/on-push/{sent}"
    figures = pump.figures
    assert (figures.received, figures.eligible, figures.admitted, figures.started) == (1, 1, 1, 1)
    assert (figures.malformed, figures.passed, figures.outstanding) == (0, 0, 0)


async def test_a_failed_dispatch_is_completed_with_its_error(lab):
    await lab.send(1)
    async with lab.running(await lab.make()) as pump:
        await lab.until_started(1)
        await lab.end_attempt(lab.started[0], status="denied", error="not yours", final="failed")

        async def completed():
            return pump.figures.completed == 1

        await lab.harness.until(completed)
    kind, payload = (await lab.lifecycle())[-1]
    assert (kind, payload["status"], payload["error"]) == (
        "pump_dispatch_completed",
        "failed",
        "not yours",
    )


async def test_a_batch_takes_two_transactions(lab):
    await lab.send(20)
    pump = await lab.make()
    count = 0
    transact = lab.log.transact

    async def counted(work):
        nonlocal count
        count += 1
        return await transact(work)

    lab.log.transact = counted
    async with lab.running(pump):
        await lab.until_started(20)

        async def passed():
            return await lab.cursor() == 20

        await lab.harness.until(passed)
    assert count == 3  # presence, admission, starts with the cursor


async def test_killed_between_admission_and_cursor(lab):
    sent = await lab.send(3)
    reached = asyncio.Event()

    async def hang(request):
        reached.set()
        await asyncio.Event().wait()

    pump = await lab.make(max_outstanding=3, start=hang)
    killed = asyncio.create_task(pump.run(asyncio.Event(), lifetime_s=60))
    await asyncio.wait_for(reached.wait(), 10)
    killed.cancel()
    with pytest.raises(asyncio.CancelledError):
        await killed
    assert (await lab.cursor(), await lab.outstanding()) == (0, 3)
    async with lab.running(await lab.make(max_outstanding=3)):

        async def passed():
            return await lab.cursor() == 3

        # All its room is taken by what was admitted and not started: that must not lock it.
        await lab.harness.until(passed)
    assert [request.event_id for request in lab.started] == sent
    kinds = Counter(kind for kind, _ in await lab.lifecycle())
    assert kinds == {
        "pump_received": 3,
        "pump_eligible": 3,
        "pump_admitted": 3,
        "pump_dispatch_started": 3,
        "pump_acked": 1,
    }


async def test_tenants_take_turns(lab):
    await lab.send(20, tenant_id="acme")
    await lab.send(2, tenant_id="beta")
    await lab.send(2)
    async with lab.running(await lab.make(max_outstanding=6)):
        await lab.until_started(6)
    assert Counter(request.tenant_id for request in lab.started) == {"acme": 2, "beta": 2, None: 2}


async def test_one_place_goes_round_the_tenants(lab):
    await lab.send(5, tenant_id="acme")
    await lab.send(1, tenant_id="beta")
    async with lab.running(await lab.make(max_outstanding=1)):
        for n in range(1, 4):
            await lab.until_started(n)
            await lab.end_attempt(lab.started[n - 1])
    tenants = [request.tenant_id for request in lab.started[:3]]
    assert Counter(tenants)["beta"] == 1


async def test_what_temporal_does_not_take_is_tried_again_and_refusals_end(lab):
    sent = await lab.send(3)
    calls = []

    async def start(request):
        calls.append(request.event_id)
        if request.event_id == sent[0]:
            raise DispatchRefusedError("too large for Temporal")
        if request.event_id == sent[1] and calls.count(sent[1]) == 1:
            raise TemporalUnavailableError("gone")
        lab.started.append(request)

    async with lab.running(await lab.make(start=start)) as pump:

        async def passed():
            return await lab.cursor() == 3

        await lab.harness.until(passed)
        assert pump.figures.started == 2
    assert (calls.count(sent[0]), calls.count(sent[1])) == (1, 2)
    [ended] = await lab.log.read("trigger.outbox")
    assert (ended.kind, ended.headers["harn_temporal.outcome"]) == ("dispatch_failed", "cancelled")
    assert ended.payload["error"] == "too large for Temporal"
    assert await lab.outstanding() == 2


async def test_what_has_ended_is_not_started(lab):
    """As after a cursor that was lost, when Temporal has forgotten the workflow."""
    request = await lab.package.request()
    await lab.end_attempt(request)
    reason = (request.binding.trigger_id, "dispatch_exists")
    before = dropped().get(reason, 0)
    sent = await lab.send(1)
    async with lab.running(await lab.make()) as pump:

        async def passed():
            return await lab.cursor() == 2

        await lab.harness.until(passed)
        assert (pump.figures.started, await lab.outstanding()) == (2, 1)
    assert [request.event_id for request in lab.started] == sent
    assert dropped()[reason] == before + 1


async def test_an_admission_tells_how_long_it_took(lab):
    seen = []
    pump = await lab.make()
    pump.figures.on_admission = seen.append
    await lab.send(1, tenant_id="acme")
    async with lab.running(pump):
        await lab.until_started(1)

        async def told():
            return bool(seen)

        await lab.harness.until(told)
    [found] = seen
    assert (found.trigger_id, found.binding_key, found.provider, found.tenant_id) == (
        "on-push",
        "on-push@v1",
        "github",
        "acme",
    )
    assert found.accepted_at_ms <= found.appended_at_ms <= found.admitted_at_ms
    assert found.admitted_at_ms <= found.started_at_ms
