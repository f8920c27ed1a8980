"""The predicate `when`: yes, no, raising, late, and its breaker."""

from __future__ import annotations

import pytest

from harn_temporal import headers
from harn_temporal.activities.breaker import OPEN_MS
from harn_temporal.temporal.starter import start_dispatch
from harn_temporal.worker import WorkerOptions, running_worker

LIB = """
asked = []

def handle(event):
    return "handled"

def yes(event):
    return True

async def no(event):
    return False

def raises(event):
    asked.append(event.id)
    raise LookupError(f"asked {len(asked)} times")
"""


@pytest.fixture
def dispatched(temporal_client, make_package, harness):
    async def run(when, payload=None):
        package = make_package(LIB, harness.trigger("handle", f"when = '{when}'"))
        request = await package.request(payload)
        log = package.log
        options = WorkerOptions(pump=False)
        async with running_worker(temporal_client, log, package.manifest, options):
            started = await start_dispatch(temporal_client, log, request)
            outcome = await started.handle.result()
        return log, outcome

    return run


@pytest.mark.parametrize("when", ["handlers::yes", "event.provider_payload.raw.n == 1"])
async def test_yes(dispatched, when):
    log, outcome = await dispatched(when)
    assert (outcome.status, outcome.result) == ("succeeded", "handled")
    lifecycle = [r for r in await log.read("triggers.lifecycle") if r.kind != "state_transition"]
    assert [r.kind for r in lifecycle] == [
        "predicate.evaluated",
        "DispatchStarted",
        "DispatchSucceeded",
    ]
    assert lifecycle[0].payload["result"] is True
    kinds = [
        node["kind"]
        for record in await log.read("observability.action_graph")
        for node in record.payload["observability"]["action_graph_nodes"]
    ]
    assert kinds == ["trigger", "predicate", "dispatch", "dispatch"]


@pytest.mark.parametrize(
    "when",
    ["handlers::no", "event.provider_payload.raw.n == 2", "event.provider_payload.raw.absent > 2"],
)
async def test_no(dispatched, when):
    log, outcome = await dispatched(when)
    assert (outcome.status, outcome.attempt_count, outcome.error) == ("skipped", 0, None)
    [record] = await log.read("trigger.outbox")
    assert (record.kind, record.payload["skip_stage"]) == ("dispatch_skipped", "predicate")
    assert record.headers[headers.OUTCOME] == "skipped"
    assert await log.read("trigger.attempts") == []


async def test_raising_fails_closed_and_three_in_a_row_open_the_breaker(
    temporal_client, make_package, harness
):
    now = [1_000_000]
    package = make_package(LIB, harness.trigger("handle", 'when = "handlers::raises"'))
    log = package.log
    reasons = []

    async def outcome_of_one():
        request = await package.request()
        started = await start_dispatch(temporal_client, log, request)
        outcome = await started.handle.result()
        assert outcome.status == "skipped"
        reasons.append(outcome.error)

    async with running_worker(
        temporal_client, log, package.manifest, WorkerOptions(pump=False), clock=lambda: now[0]
    ):
        for _ in range(4):
            await outcome_of_one()
        now[0] += OPEN_MS - 1
        await outcome_of_one()
        now[0] += 1
        await outcome_of_one()
        await outcome_of_one()
    assert reasons == [
        "LookupError: asked 1 times",
        "LookupError: asked 2 times",
        "LookupError: asked 3 times",
        "circuit_open",
        "circuit_open",
        "LookupError: asked 4 times",
        "circuit_open",
    ]
