"""Large events and results stay in the log: a workflow carries where they lie."""

from __future__ import annotations

import asyncio

import pytest

from harn_temporal.event_address import with_result
from harn_temporal.temporal.starter import start_dispatch
from harn_temporal.worker import WorkerOptions, running_worker

MIB = 2**20
LIB = """
def measure(event):
    return len(event.raw["text"])

def answer(event, context):
    if context.attempt <= event.raw.get("fails", 0):
        raise ValueError("x" * 5 * 2**20)
    return {"text": "r" * event.raw["size"]}

def last_word(event):
    raise ValueError("y" * 3 * 2**20)
"""
SMALL_HISTORY = 100 * 1024


@pytest.fixture
def backend():
    return "sqlite"


@pytest.fixture
def dispatched(temporal_client):
    """The outcome of one dispatch, and the size of its history in bytes."""

    async def run(package, trigger_id, payload):
        request = await package.request(payload, trigger_id=trigger_id)
        async with running_worker(
            temporal_client, package.log, package.manifest, WorkerOptions(pump=False)
        ):
            started = await start_dispatch(temporal_client, package.log, request)
            outcome = await asyncio.wait_for(started.handle.result(), 60)
        description = await started.handle.describe()
        return outcome, description.raw_description.workflow_execution_info.history_size_bytes

    return run


async def test_an_event_of_ten_mib(dispatched, make_package, harness):
    package = make_package(LIB, harness.trigger("measure"))
    size = 10 * MIB - 100
    outcome, history = await dispatched(package, "on-push", {"text": "e" * size})
    assert (outcome.status, outcome.result) == ("succeeded", size)
    assert history < SMALL_HISTORY


async def test_a_result_of_five_mib_after_a_failure_with_a_huge_message(
    dispatched, make_package, harness
):
    package = make_package(LIB, harness.trigger("answer", harness.FAST))
    log = package.log
    outcome, history = await dispatched(package, "on-push", {"size": 5 * MIB, "fails": 1})
    assert (outcome.status, outcome.attempt_count, outcome.result) == ("succeeded", 2, None)
    assert history < SMALL_HISTORY
    address = outcome.result_address
    whole = await with_result(log, outcome)
    assert whole.result == {"text": "r" * 5 * MIB}
    [holder] = await log.read(address.topic, after=address.event_id - 1, limit=1)
    assert holder.kind == "dispatch_succeeded"
    assert holder.payload["result"] == whole.result
    # It is written once; the others say where.
    everything = [r for head in await log.topics() for r in await log.read(head.topic)]
    assert sum(len(record.raw) for record in everything) < 5 * MIB + 200_000
    last = next(
        r for r in await log.read("triggers.lifecycle") if r.kind == "DispatchSucceeded"
    ).payload
    assert (last["result"], last["result_address"]) == (None, address.model_dump())
    failed = next(r for r in everything if r.kind == "dispatch_failed")
    assert len(failed.payload["error"].encode()) <= 8 * 1024


async def test_a_result_at_the_limit_is_carried_and_one_above_is_not(
    dispatched, make_package, harness
):
    package = make_package(LIB, harness.trigger("answer"))
    overhead = len('{"text":""}')
    at, _ = await dispatched(package, "on-push", {"size": 256 * 1024 - overhead})
    assert (len(at.result["text"]), at.result_address) == (256 * 1024 - overhead, None)
    above, _ = await dispatched(package, "on-push", {"size": 256 * 1024 - overhead + 1})
    assert above.result is None
    assert above.result_address.topic == "trigger.outbox"


async def test_a_result_beyond_what_the_log_takes_is_a_failed_attempt(
    dispatched, make_package, harness
):
    package = make_package(
        LIB, harness.trigger("answer", 'retry = { max = 1, backoff = "immediate" }')
    )
    outcome, _ = await dispatched(package, "on-push", {"size": 16 * MIB})
    assert (outcome.status, outcome.result) == ("dlq", None)
    assert "16 MiB" in outcome.error


async def test_a_large_event_that_is_dead_lettered(dispatched, make_package, harness):
    package = make_package(
        LIB, harness.trigger("last_word", 'retry = { max = 2, backoff = "immediate" }')
    )
    outcome, history = await dispatched(package, "on-push", {"text": "e" * 4 * MIB})
    assert (outcome.status, outcome.attempt_count) == ("dlq", 2)
    assert history < SMALL_HISTORY
    [moved] = [r for r in await package.log.read("trigger.dlq") if r.kind == "dlq_moved"]
    assert len(moved.payload["event"]["provider_payload"]["raw"]["text"]) == 4 * MIB


@pytest.mark.parametrize("backend", ["sqlite", "file", "memory"])
async def test_the_pump_takes_a_large_event(temporal_client, make_package, harness):
    package = make_package(LIB, harness.trigger("measure"))
    [taken] = await package.ingest(harness.event({"text": "e" * 9 * MIB}))
    async with running_worker(temporal_client, package.log, package.manifest):
        handle = temporal_client.get_workflow_handle(taken.workflow_id)

        async def ended():
            return await package.log.query(lambda r: r.inbox.outcome(taken.workflow_id))

        assert (await harness.until(ended)).status == "succeeded"
        assert (await handle.result())["result"] == 9 * MIB
