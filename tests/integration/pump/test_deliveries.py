"""The same event again: at once, after a restart, at the edge of its claim, and long after."""

from __future__ import annotations

import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from harn_temporal.eventlog import open_event_log
from harn_temporal.eventlog.records import Append
from harn_temporal.headers import OUTCOME
from harn_temporal.ingestion import ingest
from harn_temporal.registry import register
from harn_temporal.temporal.converter import data_converter
from harn_temporal.worker import running_worker

LIB = """
def handle(event):
    return event.raw["n"]

def fails(event):
    if event.raw["n"] < 64:
        raise ValueError("later")
"""
LATER = 'retry = { max = 3, backoff = "linear", delay_ms = 36000000 }'
DAY_MS = 86_400_000
NAMESPACE = "forgetful"


@pytest.fixture
def backend():
    return "sqlite"


class HeldClock:
    def __init__(self, now_ms=1_790_000_000_000):
        self.now_ms = now_ms

    def __call__(self):
        return self.now_ms


async def outcomes(log):
    return [r for r in await log.read("trigger.outbox", limit=10_000) if OUTCOME in r.headers]


async def test_one_dispatch_for_a_delivery_until_its_claim_is_over(
    temporal_client, make_package, harness, tmp_path
):
    package = make_package(
        LIB, harness.trigger("handle", LATER.replace(" }", ", retention_days = 7 }"))
    )
    manifest = package.manifest
    clock = HeldClock()

    async def deliver(n, dispatched):
        """Opens the store as a process of its own does, and lets a worker run until it is done."""
        log = await open_event_log(harness.settings("sqlite", tmp_path), clock)
        bindings = await register(log, manifest.package, manifest.bindings)
        event = harness.event({"n": n}, headers={"X-GitHub-Delivery": "delivery-1"})
        [taken] = await ingest(log, bindings, event, package=manifest.package)
        async with running_worker(temporal_client, log, manifest):

            async def all_ended():
                return len(await outcomes(log)) >= dispatched

            await harness.until(all_ended)
        found = [record.payload["result"] for record in await outcomes(log)]
        await log.close()
        return taken.status, found

    assert await deliver(1, 1) == ("accepted", [1])
    assert await deliver(2, 1) == ("duplicate", [1])
    clock.now_ms += 7 * DAY_MS - 1_000
    assert await deliver(3, 1) == ("duplicate", [1])
    clock.now_ms += 1_000
    assert await deliver(4, 2) == ("accepted", [1, 4])


@pytest.fixture
async def forgetful(temporal_client):
    """A client of the same server in a namespace that has never seen a workflow."""
    service = temporal_client.workflow_service
    await service.register_namespace(
        RegisterNamespaceRequest(
            namespace=NAMESPACE, workflow_execution_retention_period=Duration(seconds=86_400)
        )
    )
    address = temporal_client.service_client.config.target_host
    return await Client.connect(address, namespace=NAMESPACE, data_converter=data_converter)


async def test_an_envelope_again_after_temporal_has_forgotten_its_workflow(
    temporal_client, forgetful, make_package, harness
):
    package = make_package(LIB, harness.trigger("handle"))
    log = package.log
    event = harness.event({"n": 1})
    [taken] = await package.ingest(event)
    async with running_worker(temporal_client, log, package.manifest):

        async def ended():
            return await outcomes(log)

        await harness.until(ended)
    assert [each.status for each in await package.ingest(event)] == ["duplicate"]
    [envelope] = await log.read("trigger.inbox.envelopes")
    ours = {
        name: value
        for name, value in envelope.headers.items()
        if not name.startswith("harn.provenance")
    }
    await log.append([Append(envelope.topic, envelope.kind, envelope.payload, ours)])

    async def namespace_is_known():
        try:
            await forgetful.get_workflow_handle("any").describe()
        except RPCError as error:
            return "any" in error.message or error.status == RPCStatusCode.NOT_FOUND
        return False

    await harness.until(namespace_is_known)
    async with running_worker(forgetful, log, package.manifest) as worker:

        async def read():
            return worker.pump.received == 1

        await harness.until(read)
    assert len(await outcomes(log)) == 1
    with pytest.raises(RPCError):
        await forgetful.get_workflow_handle(taken.workflow_id).describe()
    starts = [r for r in await log.read("trigger.outbox") if r.kind == "dispatch_started"]
    assert len(starts) == 1


async def test_a_pump_full_of_dispatches_in_a_long_retry_goes_on(
    temporal_client, make_package, harness
):
    package = make_package(LIB, harness.trigger("fails", LATER))
    log = package.log
    assert package.manifest.max_outstanding == 64
    for n in range(64):
        await package.ingest(harness.event({"n": n}))
    async with running_worker(temporal_client, log, package.manifest) as worker:

        async def all_wait():
            records = await log.read("trigger.attempts", limit=10_000)
            return sum(record.kind == "retry_scheduled" for record in records) == 64

        await harness.until(all_wait, 60)
        [taken] = await package.ingest(harness.event({"n": 64}))

        async def ended():
            return await log.query(lambda r: r.inbox.outcome(taken.workflow_id))

        assert (await harness.until(ended)).status == "succeeded"
        assert not worker.pump.full
