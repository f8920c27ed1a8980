"""Jobs of a worker queue at a gate, and holders that are gone."""

from __future__ import annotations

from datetime import timedelta

import pytest

from harn_temporal.consumers import ConsumerOptions
from harn_temporal.events import new_event
from harn_temporal.inspection.queue_overview import queue_jobs
from harn_temporal.manifest import load_manifest
from harn_temporal.queue.models import NewJob
from harn_temporal.queue.operations import enqueue_many
from harn_temporal.scheduler import Policy

PARKED = 8
"""Jobs of a key that are parked before no more of it is claimed, with two slots."""

OTHER = {"other": ("works",)}


async def enqueue(gated, trigger, numbers, tenant=None):
    await enqueue_many(
        gated.log,
        [
            NewJob(
                queue="triage",
                trigger_id=trigger,
                binding_key=f"{trigger}@v1",
                event=new_event(
                    provider="github", kind="push", payload={"n": n}, tenant_id=tenant
                ).to_json(),
            )
            for n in numbers
        ],
    )


async def responses(gated):
    found = await gated.log.read("worker.triage.responses")
    outcomes = [r.payload["outcome"] for r in found if r.payload["outcome"] is not None]
    return [(each["trigger_id"], each["status"]) for each in outcomes]


@pytest.mark.parametrize("inline", [False, True], ids=["child", "inline"])
async def test_jobs_that_wait_at_a_gate_hold_no_slot(make_gated, inline):
    throttle = 'throttle = { period = "1h", max = 1 }'
    gated = await make_gated("works", throttle, others=OTHER)
    await enqueue(gated, "gated", range(4))
    await enqueue(gated, "other", [7])
    consumer = ConsumerOptions("triage", "worker-a", "serve", 1, inline=inline)
    async with gated.worker(consume=(consumer,), grace=timedelta(seconds=1)):

        async def both():
            return {"gated", "other"} <= {name for name, _ in await responses(gated)}

        await gated.until(both)
        gates = await gated.log.query(lambda reader: reader.gates.page())
        parked = await gated.log.query(
            lambda reader: queue_jobs(reader, "triage", Policy(), state="parked", after=0, limit=10)
        )
    assert sorted(await responses(gated)) == [("gated", "succeeded"), ("other", "succeeded")]
    assert gates[0].kind == "throttle"
    # No more than one of them ever waited in the only slot.
    assert 1 <= gates[0].waiting <= 3
    assert {view.job.trigger_id for view in parked} == {"gated"}
    assert len(parked) == gates[0].waiting


@pytest.mark.parametrize("inline", [False, True], ids=["child", "inline"])
async def test_a_throttled_tenant_leaves_the_slots_to_others(make_gated, inline):
    throttle = 'throttle = { key = "event.tenant_id", period = "1h", max = 1 }'
    gated = await make_gated("works", throttle)
    await enqueue(gated, "gated", range(200), tenant="throttled")
    consumer = ConsumerOptions("triage", "worker-a", "serve", 2, inline=inline)
    async with gated.worker(consume=(consumer,), grace=timedelta(seconds=1)):

        async def all_parked():
            gates = await gated.log.query(lambda reader: reader.gates.page())
            return [each.waiting >= PARKED for each in gates] == [True]

        await gated.until(all_parked)
        await enqueue(gated, "gated", [7], tenant="other")

        async def other_ended():
            return len(await responses(gated)) == 2

        await gated.until(other_ended)
        gates = await gated.log.query(lambda reader: reader.gates.page())
    other, throttled = gates
    assert (other.name, other.hits, other.waiting) == ("gated@v1:other", 1, 0)
    assert (throttled.name, throttled.hits) == ("gated@v1:throttled", 1)
    assert PARKED <= throttled.waiting <= PARKED + 2
    found = await gated.log.read("worker.triage.responses")
    ended = [r.payload["outcome"]["result"] for r in found if r.payload["outcome"] is not None]
    assert (len(ended), ended[-1]) == (2, 7)


@pytest.mark.parametrize("inline", [False, True], ids=["child", "inline"])
async def test_jobs_take_turns_at_a_gate(make_gated, inline):
    gated = await make_gated("works", "concurrency = { max = 1 }", "singleton = {}", others=OTHER)
    await enqueue(gated, "gated", range(3))
    consumer = ConsumerOptions("triage", "worker-a", "serve", 1, inline=inline)
    async with gated.worker(consume=(consumer,), grace=timedelta(seconds=1)):

        async def all_ended():
            return len(await responses(gated)) == 3

        await gated.until(all_ended)
    assert await responses(gated) == [("gated", "succeeded")] * 3
    kinds = await gated.kinds("concurrency")
    assert (kinds.count("concurrency_acquired"), kinds.count("concurrency_released")) == (3, 3)


@pytest.mark.parametrize("inline", [False, True], ids=["child", "inline"])
async def test_a_long_wait_behind_a_short_one_holds_no_slot(make_gated, inline):
    """The throttle's wait is too short to tell of; that for the permit lasts."""
    limits = ('throttle = { period = "1s", max = 1 }', "concurrency = { max = 1 }")
    gated = await make_gated("held", *limits, others=OTHER)
    await enqueue(gated, "gated", range(2))
    consumer = ConsumerOptions("triage", "worker-a", "serve", 2, inline=inline)
    async with gated.worker(consume=(consumer,), grace=timedelta(seconds=1)):

        async def one_waits_for_the_other():
            return (await gated.kinds("concurrency"))[1:] == ["concurrency_waiting"]

        await gated.until(one_waits_for_the_other)
        assert "throttle_wait" in await gated.kinds("throttle")
        await enqueue(gated, "other", [7])

        async def other_ended():
            return ("other", "succeeded") in await responses(gated)

        await gated.until(other_ended, 15)
        gated.let_go(0)
        gated.let_go(1)

        async def all_ended():
            return len(await responses(gated)) == 3

        await gated.until(all_ended)
    assert {status for _, status in await responses(gated)} == {"succeeded"}


@pytest.mark.parametrize("inline", [False, True], ids=["child", "inline"])
async def test_jobs_that_wait_at_a_gate_that_the_manifest_drops(make_gated, inline):
    throttle = 'throttle = { period = "5s", max = 1 }'
    gated = await make_gated("works", throttle)
    await enqueue(gated, "gated", range(2))
    before, after = (
        ConsumerOptions("triage", name, "serve", 1, inline=inline)
        for name in ("worker-a", "worker-b")
    )

    async def one_ended_and_one_waits():
        gates = await gated.log.query(lambda reader: reader.gates.page())
        waiting = [each.waiting for each in gates]
        return waiting == [1] and len(await responses(gated)) == 1

    async with gated.worker(consume=(before,), grace=timedelta(seconds=0.1)):
        await gated.until(one_ended_and_one_waits)
    path = gated.manifest.path
    path.write_text(path.read_text().replace(throttle, ""))
    gated.manifest = load_manifest(path)
    async with gated.worker(consume=(after,), grace=timedelta(seconds=0.1)):

        async def all_ended():
            return len(await responses(gated)) == 2

        await gated.until(all_ended)
        gates = await gated.log.query(lambda reader: reader.gates.page())
    assert await responses(gated) == [("gated", "succeeded")] * 2
    assert [each.waiting for each in gates] == [0]


async def test_a_terminated_holder_makes_room(make_gated):
    gated = await make_gated("held", "concurrency = { max = 1 }")
    async with gated.worker(pump=True, sweep_interval=timedelta(seconds=0.2)):
        first = await gated.request(0)
        workflow_id = f"dispatch/gated/gated/{first.event_id}"
        handle = gated.client.get_workflow_handle(workflow_id)
        await gated.begun(0)
        second = await gated.request(1)

        async def waits():
            return "concurrency_waiting" in await gated.kinds("concurrency")

        await gated.until(waits)
        parked = [
            r.payload["reason"]
            for r in await gated.log.read("orchestrator.lifecycle")
            if "reason" in r.payload
        ]
        assert parked == ["concurrency"]
        await handle.terminate()
        await gated.begun(1)
        gated.let_go(1)

        async def ended():
            found = await gated.log.query(
                lambda reader: reader.inbox.outcome(f"dispatch/gated/gated/{second.event_id}")
            )
            return found and found.status

        assert await gated.until(ended) == "succeeded"
    kinds = await gated.kinds("concurrency")
    assert "gate_abandoned" in kinds
