"""The pump keeps dispatches in its own process only where no other one waits for them."""

from __future__ import annotations

from temporalio.client import Client

from harn_temporal.naming import task_queue
from harn_temporal.temporal.converter import data_converter
from harn_temporal.temporal.other_workers import OtherWorkers
from harn_temporal.worker import WorkerOptions, running_worker

LIB = """
def handle(event):
    return event.raw["n"]
"""


async def started_eagerly(client, package, harness, payload):
    [taken] = await package.ingest(harness.event(payload))
    handle = client.get_workflow_handle(taken.workflow_id)

    async def ended():
        for record in await package.log.read("trigger.outbox"):
            if record.headers["event_id"] == taken.event_id:
                return record
        return None

    await harness.until(ended)
    history = await handle.fetch_history()
    [began] = [
        each.workflow_execution_started_event_attributes
        for each in history.events
        if each.HasField("workflow_execution_started_event_attributes")
    ]
    return began.eager_execution_accepted


async def test_work_is_left_to_others(temporal_client, make_package, harness):
    package = make_package(LIB, harness.trigger("handle"))
    log = package.log
    tasks = task_queue(log.store_id, "demo")
    host = temporal_client.service_client.config.target_host
    other = await Client.connect(host, data_converter=data_converter, identity="another process")
    async with running_worker(temporal_client, log, package.manifest):
        assert await started_eagerly(temporal_client, package, harness, {"n": 1})
        assert not await OtherWorkers(temporal_client, tasks).there()
    async with running_worker(other, log, package.manifest, WorkerOptions(pump=False)):

        async def listed():
            return await OtherWorkers(temporal_client, tasks).there()

        await harness.until(listed)
        async with running_worker(temporal_client, log, package.manifest):
            assert not await started_eagerly(temporal_client, package, harness, {"n": 2})
