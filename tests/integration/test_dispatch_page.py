"""What an operator sees of a dispatch in Temporal, and what it costs."""

from __future__ import annotations

from collections import Counter

from temporalio.api.enums.v1 import EventType
from temporalio.common import TypedSearchAttributes

from harn_temporal.temporal.search_attributes import register_search_attributes
from harn_temporal.temporal.server_process import SEARCH_ATTRIBUTES
from harn_temporal.temporal.starter import AlreadyEnded, AlreadyStarted, Started, start_dispatch
from harn_temporal.worker import WorkerOptions, running_worker
from harn_temporal.workflows.dispatch_page import (
    HARN_ATTEMPT,
    HARN_BINDING,
    HARN_EVENT,
    HARN_STATUS,
    HARN_TENANT,
    HARN_TRIGGER,
    SEARCH_KEYS,
)

OK = "def handle(event):\n    return 1\n"
ONCE_FAILING = """
def handle(event, context):
    if context.attempt == 1:
        raise ValueError("first")
    return 2
"""


async def test_a_plain_dispatch_costs_one_activity(temporal_client, make_package, harness):
    package = make_package(OK, harness.trigger("handle"))
    request = await package.request()
    log = package.log
    async with running_worker(temporal_client, log, package.manifest, WorkerOptions(pump=False)):
        started = await start_dispatch(temporal_client, log, request, eager=True)
        assert (await started.handle.result()).status == "succeeded"
    history = await started.handle.fetch_history()
    kinds = Counter(EventType.Name(event.event_type) for event in history.events)
    assert kinds["EVENT_TYPE_ACTIVITY_TASK_SCHEDULED"] == 1
    assert kinds["EVENT_TYPE_TIMER_STARTED"] == 0
    assert len(history.events) == 12


async def test_page_search_attributes_and_summaries(temporal_client, make_package, harness):
    package = make_package(
        ONCE_FAILING, harness.trigger("handle", 'retry = { backoff = "linear", delay_ms = 40 }')
    )
    event = harness.event(tenant_id="acme")
    request = await package.request(event=event)
    log = package.log
    async with running_worker(temporal_client, log, package.manifest, WorkerOptions(pump=False)):
        started = await start_dispatch(temporal_client, log, request)
        handle = started.handle
        await handle.result()
        state = await harness.state(handle)
    assert (state.phase, state.attempt, state.max_attempts) == ("ended", 2, 7)
    assert state.outcome is not None
    assert state.outcome.result == 2

    description = await handle.describe()
    found = description.typed_search_attributes
    assert found[HARN_TRIGGER] == "on-push"
    assert found[HARN_BINDING] == "on-push@v1"
    assert found[HARN_EVENT] == event.id
    assert found[HARN_TENANT] == "acme"
    assert found[HARN_STATUS] == "succeeded"
    assert found[HARN_ATTEMPT] == 2
    assert await description.static_summary() == "on-push@v1: handlers::handle"
    assert f"- Event: `{event.id}`" in (await description.static_details() or "")

    history = await handle.fetch_history()
    summaries = [
        event.user_metadata.summary.data.decode()
        for event in history.events
        if event.event_type
        in (EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, EventType.EVENT_TYPE_TIMER_STARTED)
    ]
    assert summaries == ['"attempt 1 of 7"', '"retry in 40 ms (linear)"', '"attempt 2 of 7"']


async def test_a_waiting_dispatch_says_why_and_until_when(temporal_client, make_package, harness):
    package = make_package(ONCE_FAILING, harness.trigger("handle", 'retry = { backoff = "svix" }'))
    request = await package.request()
    log = package.log
    async with running_worker(temporal_client, log, package.manifest, WorkerOptions(pump=False)):
        started = await start_dispatch(temporal_client, log, request)

        async def waits():
            state = await harness.state(started.handle)
            return state if state.phase == "retry_wait" else None

        state = await harness.until(waits)
        details = await started.handle.query("__temporal_workflow_metadata")
        await started.handle.terminate()
    assert (state.attempt, state.last_error) == (1, "ValueError: first")
    assert state.until is not None
    assert state.until.endswith("Z")
    text = details.current_details
    assert text.startswith("**Waiting for attempt 2 of 7** until 20")
    assert "(svix, 5 s)" in text
    assert text.endswith("    ValueError: first")


async def test_a_dispatch_is_started_once_for_ever(temporal_client, make_package, harness):
    package = make_package(OK, harness.trigger("handle"))
    request = await package.request()
    log = package.log
    first = await start_dispatch(temporal_client, log, request)
    second = await start_dispatch(temporal_client, log, request)
    assert isinstance(first, Started)
    assert isinstance(second, AlreadyStarted)
    assert second.handle.id == first.handle.id
    async with running_worker(temporal_client, log, package.manifest, WorkerOptions(pump=False)):
        assert (await second.handle.result()).result == 1
    third = await start_dispatch(temporal_client, log, request)
    assert isinstance(third, AlreadyEnded)
    assert (third.workflow_id, third.outcome.status) == (first.handle.id, "succeeded")
    first_replay = request.model_copy(update={"replay_of_event_id": request.event_id, "replay": 1})
    replay = await start_dispatch(temporal_client, log, first_replay)
    assert isinstance(replay, Started)
    assert replay.handle.id == f"{first.handle.id}/replay/1"
    await replay.handle.terminate()
    again = await start_dispatch(temporal_client, log, first_replay)
    assert isinstance(again, AlreadyStarted)  # closed without an outcome is not open again


async def test_without_search_attributes_nothing_is_upserted(
    temporal_client, make_package, harness
):
    package = make_package(OK, harness.trigger("handle"))
    request = await package.request(search_attributes=False)
    log = package.log
    async with running_worker(temporal_client, log, package.manifest, WorkerOptions(pump=False)):
        started = await start_dispatch(temporal_client, log, request)
        await started.handle.result()
    description = await started.handle.describe()
    ours = {key.name for key in SEARCH_KEYS}
    assert not ours & {pair.key.name for pair in description.typed_search_attributes}
    assert isinstance(description.typed_search_attributes, TypedSearchAttributes)
    assert len((await started.handle.fetch_history()).events) == 11


async def test_registering_twice_is_fine(temporal_client):
    assert await register_search_attributes(temporal_client)
    assert await register_search_attributes(temporal_client)
    assert {key.name for key in SEARCH_KEYS} == set(SEARCH_ATTRIBUTES)
