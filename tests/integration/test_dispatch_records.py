"""A dispatch leaves the records that the design names, in their order, on each backend."""

from __future__ import annotations

import pytest

from harn_temporal import headers
from harn_temporal.temporal.starter import start_dispatch
from harn_temporal.worker import WorkerOptions, running_worker

TWICE_FAILING = """
def handle(event, context):
    if context.attempt < 3:
        raise ConnectionError(f"no answer to call {context.attempt}")
    return {"issue": event.raw["n"]}
"""


@pytest.mark.parametrize("backend", ["sqlite", "file", "memory"])
async def test_two_failures_and_a_success(temporal_client, make_package, harness, backend):
    package = make_package(TWICE_FAILING, harness.trigger("handle", harness.FAST))
    request = await package.request({"n": 7})
    log = package.log
    async with running_worker(temporal_client, log, package.manifest, WorkerOptions(pump=False)):
        started = await start_dispatch(temporal_client, log, request, eager=True)
        outcome = await started.handle.result()

    assert (outcome.status, outcome.attempt_count) == ("succeeded", 3)
    assert outcome.result == {"issue": 7}
    assert (outcome.error, outcome.result_address) == (None, None)

    lifecycle = [r for r in await log.read("triggers.lifecycle") if r.kind != "state_transition"]
    assert [(r.kind, r.payload["attempt"]) for r in lifecycle] == [
        ("DispatchStarted", 1),
        ("DispatchFailed", 1),
        ("RetryScheduled", 2),
        ("DispatchStarted", 2),
        ("DispatchFailed", 2),
        ("RetryScheduled", 3),
        ("DispatchStarted", 3),
        ("DispatchSucceeded", 3),
    ]
    outbox = await log.read("trigger.outbox")
    assert [(r.kind, r.payload["attempt"], r.headers["attempt"]) for r in outbox] == [
        ("dispatch_started", 1, "1"),
        ("dispatch_failed", 1, "1"),
        ("dispatch_started", 2, "2"),
        ("dispatch_failed", 2, "2"),
        ("dispatch_started", 3, "3"),
        ("dispatch_succeeded", 3, "3"),
    ]
    assert [r.headers.get(headers.OUTCOME) for r in outbox] == [None] * 5 + ["succeeded"]
    assert {r.headers[headers.WORKFLOW_ID] for r in outbox} == {started.handle.id}
    assert outbox[1].payload["error"] == "ConnectionError: no answer to call 1"
    assert outbox[5].payload["result"] == {"issue": 7}
    attempts = await log.read("trigger.attempts")
    assert [(r.kind, r.payload["attempt"]) for r in attempts] == [
        ("attempt_recorded", 1),
        ("retry_scheduled", 2),
        ("attempt_recorded", 2),
        ("retry_scheduled", 3),
        ("attempt_recorded", 3),
    ]
    assert [r.payload["outcome"] for r in attempts if r.kind == "attempt_recorded"] == [
        "failed",
        "failed",
        "success",
    ]
    assert [r.payload["delay_ms"] for r in attempts if r.kind == "retry_scheduled"] == [30, 30]
    graph = await log.read("observability.action_graph")
    nodes = [
        (node["kind"], node["status"])
        for record in graph
        for node in record.payload["observability"]["action_graph_nodes"]
    ]
    assert [kind for kind, _ in nodes] == [
        "trigger",
        *("dispatch", "dispatch", "retry"),
        *("dispatch", "dispatch", "retry"),
        *("dispatch", "dispatch"),
    ]
    assert await log.read("trigger.dlq") == []


async def test_the_last_failure_moves_to_the_dlq(temporal_client, make_package, harness):
    package = make_package(
        "def handle(event):\n    raise PermissionError('not yours')\n",
        harness.trigger("handle", 'retry = { max = 2, backoff = "immediate" }'),
    )
    request = await package.request({"n": 1}, event=harness.event({"n": 1}, tenant_id="acme"))
    log = package.log
    async with running_worker(temporal_client, log, package.manifest, WorkerOptions(pump=False)):
        started = await start_dispatch(temporal_client, log, request)
        outcome = await started.handle.result()

    assert (outcome.status, outcome.attempt_count) == ("dlq", 2)
    assert outcome.error == "PermissionError: not yours"
    [moved] = await log.read("tenant.acme.trigger.dlq")
    assert moved.kind == "dlq_moved"
    assert [a["outcome"] for a in moved.payload["attempts"]] == ["failed", "failed"]
    assert [a["attempt"] for a in moved.payload["attempts"]] == [1, 2]
    assert moved.payload["attempt_count"] == 2
    [entry] = await log.read("trigger.dlq")
    assert (entry.kind, entry.payload["state"]) == ("dlq_entry", "pending")
    assert len(entry.payload["retry_history"]) == 2
    outbox = await log.read("tenant.acme.trigger.outbox")
    assert outbox[-1].headers[headers.OUTCOME] == "dlq"
    assert await log.read("trigger.outbox") == []


async def test_hard_text_in_an_error_reaches_the_dlq(temporal_client, make_package, harness):
    lib = (
        "def handle(event):\n"
        '    raise ValueError("nul \\x00, lone \\ud800 and \\udfff, \\u202e, \\U0001f600 " '
        '+ "x" * 20_000)\n'
    )
    package = make_package(
        lib, harness.trigger("handle", 'retry = { max = 2, backoff = "immediate" }')
    )
    event = harness.event(
        {"text": "lone \ud83d, nul \x00"}, headers={"x-title": "\udc80 caf\u00e9"}
    )
    request = await package.request(event=event)
    log = package.log
    async with running_worker(temporal_client, log, package.manifest, WorkerOptions(pump=False)):
        started = await start_dispatch(temporal_client, log, request)
        outcome = await started.handle.result()

    beginning = "ValueError: nul \x00, lone \ufffd and \ufffd, \u202e, \U0001f600 xxx"
    assert outcome.status == "dlq"
    assert outcome.error is not None
    assert outcome.error.startswith(beginning)
    assert len(outcome.error.encode()) <= 8 * 1024
    moved, entry = await log.read("trigger.dlq")
    assert moved.payload["final_error"] == outcome.error
    assert entry.payload["error"] == outcome.error
    assert moved.payload["event"]["provider_payload"]["raw"] == {"text": "lone \ufffd, nul \x00"}
