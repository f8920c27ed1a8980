"""A dispatch to `worker://queue` ends as a job, once, with the receipt as its result."""

from __future__ import annotations

import pytest

from harn_temporal.activities.attempt_log import AttemptLog
from harn_temporal.activities.queue_route import enqueued
from harn_temporal.bindings import HandlerTarget
from harn_temporal.contracts import AttemptOutcome
from harn_temporal.queue.operations import WorkerQueue
from harn_temporal.scheduler import Policy
from harn_temporal.temporal.starter import start_dispatch
from harn_temporal.worker import WorkerOptions, running_worker

PRODUCER = """id = "incoming-review-task"
kind = "webhook"
provider = "github"
match = { events = ["push"] }
handler = "worker://triage"
priority = "high\""""

RECEIPT = {"queue": "triage", "job_event_id": 1, "response_topic": "worker.triage.responses"}


@pytest.mark.parametrize("backend", ["sqlite", "file", "memory"])
async def test_the_event_becomes_a_job(temporal_client, make_package, harness, backend):
    package = make_package("", PRODUCER)
    event = harness.event({"n": 7}, tenant_id="acme")
    request = await package.request(event=event)
    log = package.log
    async with running_worker(temporal_client, log, package.manifest, WorkerOptions(pump=False)):
        started = await start_dispatch(temporal_client, log, request, eager=True)
        outcome = await started.handle.result()

    assert (outcome.status, outcome.attempt_count) == ("succeeded", 1)
    assert (outcome.handler_kind, outcome.target_uri) == ("worker", "worker://triage")
    assert outcome.result == RECEIPT
    (job,) = await log.read("worker.triage")
    assert job.payload == {
        "queue": "triage",
        "trigger_id": "incoming-review-task",
        "binding_key": "incoming-review-task@v1",
        "binding_version": 1,
        "event": event.to_json(),
        "replay_of_event_id": None,
        "priority": "high",
    }
    outbox = await log.read("tenant.acme.trigger.outbox")
    assert [record.kind for record in outbox] == ["dispatch_started", "dispatch_succeeded"]
    assert outbox[1].payload["result"] == RECEIPT
    graph = await log.read("observability.action_graph")
    (node,) = graph[-1].payload["observability"]["action_graph_nodes"]
    assert (node["kind"], node["outcome"]) == ("worker_enqueue", "enqueued")
    assert node["metadata"]["queue_name"] == "triage"
    assert node["metadata"]["job_event_id"] == 1
    assert node["metadata"]["response_topic"] == "worker.triage.responses"
    (claim,) = (await WorkerQueue(log, "triage", Policy()).claim("c")).claims
    assert claim.scheduling.fairness_key == "acme"
    assert claim.scheduling.priority == "high"


async def attempt(package, request, number: int = 1) -> AttemptOutcome:
    log = AttemptLog(package.log, request, dispatch_id="w", run_id="r", attempt=number)
    await log.start()
    return await log.act(lambda tx: enqueued(tx, request, number))


async def test_an_attempt_that_is_run_again_enqueues_once(make_package):
    package = make_package("", PRODUCER)
    request = await package.request({"n": 1})
    first = await attempt(package, request)
    assert await attempt(package, request) == first
    assert first.result == RECEIPT
    assert len(await package.log.read("worker.triage")) == 1


@pytest.mark.parametrize(
    ("header", "expected"), [("low", "low"), (" NORMAL ", "normal"), ("urgent", "high")]
)
async def test_the_event_may_say_its_priority(make_package, harness, header, expected):
    package = make_package("", PRODUCER)
    event = harness.event(headers={"priority": header})
    request = await package.request(event=event, replay_of_event_id="trigger_evt_0")
    await attempt(package, request)
    (job,) = await package.log.read("worker.triage")
    assert job.payload["priority"] == job.headers["priority"] == expected
    assert job.payload["replay_of_event_id"] == "trigger_evt_0"


async def test_a_name_that_another_queue_has_fails_for_good(make_package):
    package = make_package("", PRODUCER)
    request = await package.request({"n": 1})

    def to(queue):
        handler = HandlerTarget(kind="worker", uri=f"worker://{queue}")
        return request.model_copy(
            update={"binding": request.binding.model_copy(update={"handler": handler})}
        )

    assert (await attempt(package, to("a b"))).final == "succeeded"
    outcome = await attempt(package, to("a/b"), 2)
    assert (outcome.status, outcome.final, outcome.retry_in_ms) == ("failed", "failed", None)
    assert "'a b'" in outcome.error
    assert len(await package.log.read("worker.a_b")) == 1
