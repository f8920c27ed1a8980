"""The circuit of an agent that keeps failing, shared by all workers of a store."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest
from prometheus_client import CollectorRegistry
from temporalio.client import Client

from harn_temporal.a2a.failures import A2aError
from harn_temporal.clock import system_clock
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.scheduler.policy import Policy
from harn_temporal.telemetry.process_metrics import ProcessMetrics
from harn_temporal.telemetry.store_metrics import store_gauges
from harn_temporal.temporal.converter import data_converter

SEVEN = 'retry = { max = 7, backoff = "linear", delay_ms = 30 }'


class Hours:
    """The store's clock, which a test moves on."""

    def __init__(self):
        self.ahead_ms = 0

    def __call__(self):
        return system_clock() + self.ahead_ms


class Agents:
    """A client whose agent is away for as long as `away` is set."""

    def __init__(self, real):
        self._real = real
        self.away = True
        self.asked = 0
        self.held = None

    def __getattr__(self, name):
        return getattr(self._real, name)

    async def send(self, *args, **kwargs):
        self.asked += 1
        if self.held is not None:
            await self.held.wait()
        if self.away:
            raise A2aError("the agent is away")
        return await self._real.send(*args, **kwargs)


@pytest.fixture
async def circuit(agent_package, sdk_agent, client, tmp_path):
    clock = Hours()
    log = await open_event_log(StoreSettings("sqlite", tmp_path / "circuit.sqlite"), clock=clock)
    agents = Agents(client)
    authority = sdk_agent("1.0").authority

    def make(*lines):
        package = agent_package(authority, *lines, agents=agents)
        return dataclasses.replace(package, log=log)

    yield make, clock, agents
    await log.close()


async def ended(package, **changes):
    async with asyncio.timeout(30):
        return await (await package.start(**changes)).result()


async def circuit_state(package):
    found = await package.log.query(lambda reader: store_gauges(reader, Policy()))
    [family] = [each for each in found if each.name == "harn_circuit_state"]
    [sample] = family.samples
    return sample.value


async def test_the_story_of_a_circuit(circuit, temporal_address):
    make, clock, agents = circuit
    package = make(SEVEN)
    second = await Client.connect(temporal_address, data_converter=data_converter)
    another = dataclasses.replace(package, client=second)
    async with package.worker(), another.worker():
        opener = await ended(package)
        assert (opener.status, opener.attempt_count) == ("dlq", 7)
        assert agents.asked == 7
        refused = await ended(package)
        assert (refused.status, refused.attempt_count) == ("dlq", 0)
        assert agents.asked == 7
        moved = (await package.log.read("triggers.lifecycle"))[-1]
        assert moved.kind == "DlqMoved"
        assert (moved.payload["reason"], moved.payload["attempt_count"]) == ("circuit_open", 0)
        assert await circuit_state(package) == 2
        clock.ahead_ms += 61_000
        assert await circuit_state(package) == 1
        agents.away, agents.held = False, asyncio.Event()
        probe = await package.start()
        async with asyncio.timeout(30):
            while agents.asked < 8:  # noqa: ASYNC110 - the probe asks
                await asyncio.sleep(0.01)
        other = await ended(package)
        assert (other.status, other.attempt_count) == ("dlq", 0)
        agents.held.set()
        assert (await probe.result()).status == "succeeded"
        assert (await ended(package)).status == "succeeded"
    kinds_topic = (await package.log.topics("trigger.circuit."))[0].topic
    registry = CollectorRegistry()
    metrics = ProcessMetrics(registry)
    for topic in ("trigger.dlq", kinds_topic):
        metrics.appended(await package.log.read(topic), 0)

    def counted(action):
        labels = {"dimension": "circuit", "action": action}
        return registry.get_sample_value("harn_backpressure_events_total", labels)

    assert [counted(each) for each in ("open", "reject", "probe", "close")] == [1, 2, 1, 1]
    labels = {"trigger_id": "reviews", "reason": "circuit_open"}
    assert registry.get_sample_value("harn_trigger_dlq_total", labels) == 2
    entries = [r.payload for r in await package.log.read("trigger.dlq") if r.kind == "dlq_entry"]
    assert [len(each["retry_history"]) for each in entries] == [7, 0, 0]
    kinds = await package.kinds(kinds_topic)
    assert kinds == [
        *["circuit_failure"] * 4,
        "circuit_opened",
        "circuit_probe",
        "circuit_closed",
    ]


async def test_a_probe_that_is_cancelled_makes_room_for_another(circuit):
    make, clock, agents = circuit
    package = make('retry = { max = 5, backoff = "linear", delay_ms = 30 }')
    async with package.worker():
        assert (await ended(package)).status == "dlq"
        clock.ahead_ms += 61_000
        agents.held = asyncio.Event()
        probe = await package.start()
        async with asyncio.timeout(30):
            while agents.asked < 6:  # noqa: ASYNC110 - the probe asks
                await asyncio.sleep(0.01)
        assert (await ended(package)).status == "dlq"
        await probe.cancel()
        assert (await probe.result()).status == "cancelled"
        agents.away, agents.held = False, None
        assert (await ended(package)).status == "succeeded"
