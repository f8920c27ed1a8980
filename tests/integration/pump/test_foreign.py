"""Envelopes that Harn wrote: left alone, unless they are to be adopted."""

from __future__ import annotations

import asyncio

import pytest

from harn_temporal.eventlog.records import Append
from harn_temporal.worker import WorkerOptions, running_worker

TOPIC = "trigger.inbox.envelopes"


def harn_envelope(event, trigger_id=None, version=None, topic=TOPIC):
    payload = {"trigger_id": trigger_id, "binding_version": version, "event": event.to_json()}
    return Append(topic, "event_ingested", payload)


@pytest.fixture
def three(make_lab, harness):
    """A trigger for every push, one with a filter, and one for something else."""
    return make_lab(
        harness.trigger("handle"),
        harness.trigger(
            "handle", 'filter = "event.provider_payload.raw.n > `5`"', trigger_id="big"
        ),
        harness.trigger("handle", trigger_id="other").replace('"push"', '"issues.opened"'),
    )


async def passed(lab, cursor, topic=TOPIC):
    async def reached():
        return await lab.cursor(topic) == cursor

    await lab.harness.until(reached)


async def test_left_alone(three, harness):
    await three.log.append(
        [
            harn_envelope(harness.event({"n": 1})),
            harn_envelope(harness.event({"n": 9}), "on-push", 1),
        ]
    )
    async with three.running(await three.make()) as pump:
        await passed(three, 2)
    assert three.started == []
    assert await three.lifecycle() == []
    assert (pump.figures.received, pump.figures.passed) == (0, 2)


async def test_expanded_to_the_bindings_it_matches(three, harness):
    small, big = harness.event({"n": 1}), harness.event({"n": 9}, tenant_id="acme")
    await three.log.append([harn_envelope(small), harn_envelope(big, topic=f"tenant.acme.{TOPIC}")])
    async with three.running(await three.make(adopt_foreign=True)):
        await passed(three, 1)
        await passed(three, 1, f"tenant.acme.{TOPIC}")
    found = {(request.event_id, request.binding.trigger_id) for request in three.started}
    assert found == {(small.id, "on-push"), (big.id, "on-push"), (big.id, "big")}
    assert {request.tenant_id for request in three.started if request.event_id == big.id} == {
        "acme"
    }


async def test_one_that_names_its_trigger_goes_there_or_nowhere(three, harness):
    named, unknown = harness.event({"n": 9}), harness.event({"n": 9})
    await three.log.append(
        [harn_envelope(named, "other", 7), harn_envelope(unknown, "only-harn-has-it", 1)]
    )
    async with three.running(await three.make(adopt_foreign=True)) as pump:
        await passed(three, 2)
    [request] = three.started
    assert (request.event_id, request.binding.binding_key) == (named.id, "other@v1")
    assert pump.figures.malformed == 0


async def test_the_legacy_topic_is_read(three, harness):
    event = harness.event({"n": 1})
    claim = {"binding_id": "on-push", "dedupe_key": "k", "expires_at_ms": 1}
    await three.log.append(
        [
            Append("trigger.inbox", "dedupe_claim", claim),
            harn_envelope(event, topic="trigger.inbox"),
        ]
    )
    async with three.running(await three.make(adopt_foreign=True)):
        await passed(three, 2, "trigger.inbox")
    [request] = three.started
    assert (request.event_id, request.address.topic) == (event.id, "trigger.inbox")


async def test_another_packages_envelope_is_not_adopted(three, harness):
    event = harness.event({"n": 1})
    record = harn_envelope(event)
    marked = Append(record.topic, record.kind, record.payload, {"harn_temporal.package": "theirs"})
    await three.log.append([marked])
    async with three.running(await three.make(adopt_foreign=True)):
        await passed(three, 1)
    assert three.started == []


async def test_an_expansion_never_overfills_the_pump(three, harness):
    await three.log.append([harn_envelope(harness.event({"n": 9})) for _ in range(3)])
    async with three.running(await three.make(adopt_foreign=True, max_outstanding=3)):
        await passed(three, 1)
        await three.harness.until(lambda: _full(three))
        assert (len(three.started), await three.outstanding()) == (2, 2)
        await three.end_attempt(three.started[0])
        await passed(three, 2)
        assert len(three.started) == 4


async def test_a_pump_without_room_for_an_expansion_waits_for_an_append(three, harness):
    await three.log.append([harn_envelope(harness.event({"n": 9})) for _ in range(2)])
    pump = await three.make(adopt_foreign=True, max_outstanding=3)
    stop = asyncio.Event()
    assert [await pump._round(stop), await pump._round(stop)] == [True, False]


async def test_an_expansion_beyond_all_room_is_taken_alone(three, harness):
    await three.log.append([harn_envelope(harness.event({"n": 9})) for _ in range(2)])
    async with three.running(await three.make(adopt_foreign=True, max_outstanding=1)):
        await passed(three, 1)
        assert len(three.started) == 2
        for request in three.started[:2]:
            await three.end_attempt(request)
        await passed(three, 2)
        assert len(three.started) == 4


async def test_a_worker_that_adopts(temporal_client, three, harness):
    event = harness.event({"n": 1})
    await three.log.append([harn_envelope(event)])
    manifest = three.package.manifest
    async with running_worker(
        temporal_client, three.log, manifest, WorkerOptions(adopt_foreign=True)
    ):
        workflow_id = f"dispatch/demo/on-push/{event.id}"

        async def ended():
            return await three.log.query(lambda reader: reader.inbox.outcome(workflow_id))

        assert (await three.harness.until(ended)).status == "succeeded"


async def _full(lab):
    return await lab.outstanding() == 2
