"""Dispatches whose handler is an agent, through Temporal and into the EventLog."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest
from a2a.helpers.proto_helpers import new_text_message, new_text_part
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import REGISTRY

from harn_temporal.a2a.client import A2aClient
from harn_temporal.telemetry import tracing
from harn_temporal.telemetry.otel import EventTraceIds, OtelTracer

FAST = 'retry = { max = 3, backoff = "linear", delay_ms = 30 }'
FOLLOW = 'a2a = { follow = true, timeout = "1m", poll = "50ms" }'
TOKEN = "tok-9f8e7d6c5b4a"
PUSH = "psh-12345"
GENERATIONS = pytest.mark.parametrize(
    ("version", "get", "cancel"),
    [("1.0", "GetTask", "CancelTask"), ("0.3", "tasks/get", "tasks/cancel")],
)


class SlowWork:
    """An agent's work that goes on until a test lets it end."""

    def __init__(self):
        self.release = threading.Event()

    async def __call__(self, context, task):
        await task.start_work()
        while not self.release.is_set():  # noqa: ASYNC110 - set in the test's thread
            await asyncio.sleep(0.01)
        await task.add_artifact([new_text_part('{"score": 7}')])
        await task.complete()


@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_an_inline_answer_and_its_records(version, sdk_agent, agent_package):
    agent = sdk_agent(version)
    package = agent_package(agent.authority)
    outcome = await package.dispatch()
    assert (outcome.status, outcome.attempt_count) == ("succeeded", 1)
    assert outcome.result == {"verdict": "fine"}
    assert outcome.handler_kind == "a2a"
    assert outcome.target_uri == f"a2a://{agent.authority}/triage"
    assert await package.kinds("triggers.lifecycle") == ["DispatchStarted", "DispatchSucceeded"]
    assert await package.kinds("trigger.outbox") == ["dispatch_started", "dispatch_succeeded"]
    running, ended = await package.hops()
    assert running["id"] == ended["id"] == f"a2a:reviews@v1:{outcome.event_id}:1"
    assert (running["status"], ended["status"], ended["outcome"]) == (
        "running",
        "completed",
        "completed",
    )
    assert ended["label"] == "triage"
    assert ended["metadata"] == {
        "handler_kind": "a2a",
        "target_uri": f"a2a://{agent.authority}/triage",
        "attempt": 1,
        "trigger_id": "reviews",
        "event_id": outcome.event_id,
        "target_agent": "triage",
    }
    edges = [
        edge
        for record in await package.log.read("observability.action_graph")
        for edge in record.payload["observability"]["action_graph_edges"]
    ]
    assert [(e["kind"], e["from_id"], e["to_id"]) for e in edges] == [
        ("a2a_dispatch", f"trigger:{outcome.event_id}", ended["id"])
    ]
    attempts = await package.log.read("trigger.attempts")
    assert (attempts[0].payload["outcome"], attempts[0].headers["handler_kind"]) == (
        "success",
        "a2a",
    )


async def test_a_pending_answer_that_is_not_followed_is_a_handle(sdk_agent, agent_package):
    async def work(context, task):
        await task.requires_input(new_text_message("which branch?"))

    agent = sdk_agent("1.0", work)
    package = agent_package(agent.authority)
    outcome = await package.dispatch()
    assert outcome.status == "succeeded"
    assert outcome.result["kind"] == "a2a_task_handle"
    assert outcome.result["task_id"] == agent.executor.tasks[0]
    ended = (await package.hops())[-1]
    assert (ended["status"], ended["outcome"]) == ("completed", "pending")
    assert ended["metadata"]["task_id"] == agent.executor.tasks[0]
    assert ended["metadata"]["state"] == "input-required"


@GENERATIONS
async def test_a_task_is_followed_to_its_end_across_a_worker_restart(
    *, version, get, cancel, sdk_agent, agent_package
):
    work = SlowWork()
    agent = sdk_agent(version, work)
    package = agent_package(agent.authority, FOLLOW)
    async with package.worker():
        handle = await package.start()
        await package.phase(handle, "following")
    assert await package.kinds("trigger.outbox") == ["dispatch_started"]
    work.release.set()
    async with package.worker():
        outcome = await handle.result()
    assert (outcome.status, outcome.attempt_count, outcome.result) == (
        "succeeded",
        1,
        {"score": 7},
    )
    assert agent.methods()[0] in {"SendMessage", "message/send"}
    assert set(agent.methods()[1:]) == {get}
    assert len(agent.executor.tasks) == 1
    assert await package.kinds("trigger.outbox") == ["dispatch_started", "dispatch_succeeded"]
    nodes = [(n["status"], n["outcome"], n["metadata"].get("state")) for n in await package.hops()]
    assert nodes[0] == ("running", "attempt_1", None)
    assert nodes[1][:2] == ("running", "pending")
    assert nodes[1][2] in {"submitted", "working"}
    assert nodes[2:] == [("completed", "completed", "completed")]
    parked = await package.log.read("orchestrator.lifecycle")
    assert [(record.kind, record.payload) for record in parked] == [
        ("dispatch_parked", {"workflow_id": handle.id, "reason": "a2a_task", "attempt": 1})
    ]


@GENERATIONS
async def test_cancelling_the_dispatch_cancels_the_task(
    *, version, get, cancel, sdk_agent, agent_package
):
    agent = sdk_agent(version, SlowWork())
    package = agent_package(agent.authority, FOLLOW, FAST)
    async with package.worker():
        handle = await package.start()
        await package.phase(handle, "following")
        await handle.cancel()
        outcome = await handle.result()
    assert (outcome.status, outcome.attempt_count) == ("cancelled", 1)
    assert agent.executor.cancelled == agent.executor.tasks
    assert agent.methods()[-1] == cancel
    attempts = await package.log.read("trigger.attempts")
    assert [record.payload["outcome"] for record in attempts] == ["cancelled"]
    assert (await package.hops())[-1]["metadata"]["task_id"] == agent.executor.tasks[0]


async def test_a_task_that_outlasts_the_binding_is_cancelled_and_counts_as_a_timeout(
    sdk_agent, agent_package
):
    agent = sdk_agent("1.0", SlowWork())
    package = agent_package(
        agent.authority,
        'a2a = { follow = true, timeout = "300ms", poll = "50ms" }',
        'retry = { max = 1, backoff = "immediate" }',
    )
    outcome = await package.dispatch()
    assert outcome.status == "dlq"
    assert outcome.error == "the agent's task did not end within 300 ms"
    assert agent.executor.cancelled == agent.executor.tasks
    attempts = await package.log.read("trigger.attempts")
    assert [record.payload["outcome"] for record in attempts] == ["timeout"]


async def test_a_followed_task_that_needs_input_ends_as_waiting(sdk_agent, agent_package):
    async def work(context, task):
        await task.start_work()
        await task.requires_input(new_text_message("which branch?"))

    package = agent_package(sdk_agent("1.0", work).authority, FOLLOW)
    outcome = await package.dispatch()
    assert (outcome.status, outcome.error) == ("waiting", "which branch?")
    assert await package.kinds("trigger.outbox") == ["dispatch_started", "dispatch_waiting"]


async def test_a_followed_task_that_fails_is_tried_again_and_dead_in_the_end(
    sdk_agent, agent_package
):
    async def work(context, task):
        await task.start_work()
        await task.failed(new_text_message("out of ideas"))

    agent = sdk_agent("1.0", work)
    package = agent_package(agent.authority, FOLLOW, FAST)
    outcome = await package.dispatch()
    assert (outcome.status, outcome.attempt_count) == ("dlq", 3)
    assert outcome.error == "the agent's task failed: out of ideas"
    messages = [m.message_id for m in agent.executor.messages]
    assert len(messages) == 3
    assert len(set(messages)) == 1


async def test_an_agent_that_is_away_for_a_moment_is_asked_again(scripted, scripts, agent_package):
    """Busy, broken and garbage are no news of a task; the wait that it asks for is kept."""
    task = {"id": "t1", "status": {"state": "TASK_STATE_WORKING"}}
    done = {
        "id": "t1",
        "status": {"state": "TASK_STATE_COMPLETED"},
        "artifacts": [{"parts": [{"text": "done"}]}],
    }
    agent = await scripted(
        scripts.agent(
            scripts.in_turn(
                scripts.result({"task": task}),
                lambda _: scripts.http(500),
                lambda _: scripts.http(200, b"{"),
                lambda _: scripts.http(429, retry_after="1"),
                scripts.result(task),
                scripts.result(done),
            )
        )
    )
    package = agent_package(agent.authority, FOLLOW)
    outcome = await package.dispatch()
    assert (outcome.status, outcome.attempt_count, outcome.result) == ("succeeded", 1, "done")
    assert [call.rpc["method"] for call in agent.calls] == ["SendMessage"] + ["GetTask"] * 5


async def test_a_task_that_the_agent_forgot_is_a_failed_attempt(scripted, scripts, agent_package):
    task = {"id": "t1", "status": {"state": "TASK_STATE_WORKING"}}
    gone = {"code": -32001, "message": "no such task"}
    agent = await scripted(
        scripts.agent(
            scripts.in_turn(
                scripts.result({"task": task}),
                lambda _: scripts.http(200, {"error": gone}),
                scripts.result({"message": {"parts": [{"text": "second try"}]}}),
            )
        )
    )
    package = agent_package(agent.authority, FOLLOW, FAST)
    outcome = await package.dispatch()
    assert (outcome.status, outcome.attempt_count, outcome.result) == (
        "succeeded",
        2,
        "second try",
    )


async def test_denied_is_not_retried_and_no_dead_letter(*, scripted, scripts, agent_package, guard):
    sentinel = await scripted(scripts.agent(lambda _: b""))
    agent = await scripted(scripts.agent(lambda _: b"", lambda _: scripts.card_1_0(sentinel.url)))
    package = agent_package(agent.authority, FAST)
    outcome = await package.dispatch()
    assert (outcome.status, outcome.attempt_count) == ("failed", 1)
    assert "not the authority" in outcome.error
    assert (sentinel.connections, guard.refused) == (0, [])
    attempts = await package.log.read("trigger.attempts")
    assert [record.payload["outcome"] for record in attempts] == ["denied"]
    assert await package.kinds("trigger.dlq") == []
    node = (await package.hops())[-1]
    assert (node["status"], node["outcome"]) == ("failed", "denied")


async def test_canceled_by_the_agent_is_a_failure_that_is_not_retried(
    scripted, scripts, agent_package
):
    task = {"id": "t1", "status": {"state": "canceled"}}
    agent = await scripted(scripts.agent(scripts.result(task), scripts.card_0_3))
    package = agent_package(agent.authority, FAST)
    outcome = await package.dispatch()
    assert (outcome.status, outcome.attempt_count) == ("failed", 1)
    assert await package.kinds("trigger.dlq") == []


async def test_retry_after_holds_back_the_next_attempt_and_the_message_id_stays(
    scripted, scripts, agent_package
):
    times = []

    def answer(seen):
        times.append(asyncio.get_running_loop().time())
        if len(times) == 1:
            return scripts.http(429, retry_after="1")
        if len(times) == 2:
            return scripts.http(500)
        return scripts.result({"message": {"parts": [{"text": "ok"}]}})(seen)

    agent = await scripted(scripts.agent(answer))
    package = agent_package(agent.authority, FAST)
    outcome = await package.dispatch()
    assert (outcome.status, outcome.attempt_count, outcome.result) == ("succeeded", 3, "ok")
    retries = [
        record.payload["delay_ms"]
        for record in await package.log.read("trigger.attempts")
        if record.kind == "retry_scheduled"
    ]
    assert retries == [1000, 30]
    assert times[1] - times[0] >= 1.0
    trace_id = agent.calls[0].rpc["params"]["message"]["contextId"]
    assert [call.rpc["params"]["message"]["messageId"] for call in agent.calls] == [
        f"{trace_id}.{outcome.event_id}.reviews"
    ] * 3


async def test_a_replay_has_a_message_id_of_its_own(sdk_agent, agent_package):
    agent = sdk_agent("1.0")
    package = agent_package(agent.authority)
    outcome = await package.dispatch(replay=2)
    (message,) = agent.executor.messages
    assert message.message_id == f"{message.context_id}.{outcome.event_id}.reviews.r2"


async def test_a_slow_agent_is_a_timeout_and_cancelling_reaches_a_hop(
    scripted, scripts, agent_package
):
    reached = asyncio.Event()

    async def script(seen, writer):
        if seen.method == "GET":
            await scripts.agent(lambda _: b"")(seen, writer)
            return
        reached.set()
        await asyncio.Event().wait()

    agent = await scripted(script)
    package = agent_package(
        agent.authority, 'timeout = "300ms"', 'retry = { max = 1, backoff = "immediate" }'
    )
    outcome = await package.dispatch()
    assert outcome.status == "dlq"
    assert "within 300 ms" in outcome.error or "within 0.3 s" in outcome.error
    reached.clear()
    package = agent_package(agent.authority, FAST)
    async with package.worker():
        handle = await package.start()
        await reached.wait()
        await handle.cancel()
        outcome = await handle.result()
    assert (outcome.status, outcome.attempt_count) == ("cancelled", 1)


async def test_the_token_is_in_no_log_line_history_or_record(
    *, scripted, scripts, agent_package, tls, limits, caplog
):
    """The agent repeats the token wherever it can."""
    caplog.set_level(logging.DEBUG)
    task = {
        "id": f"t-{TOKEN}",
        "status": {
            "state": "TASK_STATE_WORKING",
            "message": {"role": "ROLE_AGENT", "parts": [{"text": TOKEN}]},
        },
    }
    failed = {"id": "t1", "status": task["status"] | {"state": "TASK_STATE_FAILED"}}
    agent = await scripted(
        scripts.agent(
            scripts.in_turn(
                lambda _: scripts.http(200, {"error": {"code": 1, "message": TOKEN}}),
                lambda _: scripts.http(500, {"error": {"code": 1, "message": TOKEN}}),
                scripts.result({"task": task}),
                scripts.result(failed),
                scripts.result({"message": {"parts": [{"text": f"bye {TOKEN}"}]}}),
            )
        )
    )
    agents = A2aClient(
        limits=limits, context=tls.client, environ={"T": TOKEN, "HARN_A2A_PUSH_TOKEN": "psh-12345"}
    )
    package = agent_package(
        agent.authority,
        FOLLOW,
        'auth = { bearer_env = "T" }',
        'retry = { max = 5, backoff = "linear", delay_ms = 10 }',
        agents=agents,
    )
    async with package.worker():
        handle = await package.start()
        outcome = await handle.result()
        history = await handle.fetch_history()
        described = await handle.describe()
    assert (outcome.status, outcome.result) == ("succeeded", "bye [redacted]")
    assert {call.headers["authorization"] for call in agent.calls} == {f"Bearer {TOKEN}"}
    records = [
        record
        for head in await package.log.topics()
        for record in await package.log.read(head.topic)
    ]
    assert len(records) > 10
    assert TOKEN not in str(records)
    written = b"".join(event.SerializeToString() for event in history.events)
    assert TOKEN.encode() not in written
    assert b"the agent's task failed: [redacted]" in written
    assert TOKEN.encode() not in described.raw_description.SerializeToString()
    assert TOKEN not in caplog.text
    assert all(TOKEN not in str(record.__dict__) for record in caplog.records)


async def test_the_actor_chain_and_the_senders_trace_go_along(sdk_agent, agent_package):
    chain = {"sub": "agent-b", "act": {"sub": "agent-a"}}
    agent = sdk_agent("1.0")
    package = agent_package(agent.authority)
    sender = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    await package.dispatch(actor_chain=chain, headers={"traceparent": sender})
    assert agent.bodies[0]["params"]["message"]["metadata"]["actor_chain"] == chain
    assert agent.headers[0]["traceparent"].startswith("00-0af7651916cd43dd8448eb211c80319c-")


async def test_hops_are_counted_and_timed(sdk_agent, agent_package):
    agent = sdk_agent("1.0")
    target = f"a2a://{agent.authority}/triage"
    await agent_package(agent.authority).dispatch()
    found = REGISTRY.get_sample_value(
        "harn_a2a_hops_total", {"target": target, "outcome": "completed"}
    )
    assert found == 1
    timed = REGISTRY.get_sample_value("harn_a2a_hop_duration_seconds_count", {"target": target})
    assert timed == 1


async def test_a_worker_warns_once_of_tokens_that_are_not_set(agent_package, client, caplog):
    """At its start: not at the first event, which may come at night."""
    agents = A2aClient(environ={"SET": TOKEN, "EMPTY": " ", "ODD": "se\ncret"})
    cases = [("SET", None), ("UNSET", "UNSET"), ("EMPTY", "EMPTY"), ("ODD", "ODD")]
    for name, expected in cases:
        caplog.clear()
        auth = f'auth = {{ bearer_env = "{name}" }}'
        async with agent_package("127.0.0.1:1", auth, agents=agents).worker():
            warned = [r for r in caplog.records if r.msg == "agent_tokens_missing"]
            assert [r.variables for r in warned] == ([[expected]] if expected else [])
            assert all(r.levelno == logging.WARNING for r in warned)
    assert "cret" not in caplog.text


@pytest.fixture
def spans():
    """Every span of this process, as an exporter gets it."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(id_generator=EventTraceIds(), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing.install(OtelTracer(provider))
    yield exporter
    tracing.stop()


async def test_the_token_is_in_no_span(*, scripted, scripts, agent_package, tls, limits, spans):
    """Nor is what the agent says, which repeats it: hops that fail, are denied, and go well."""
    failed = {"id": "t1", "status": {"state": "failed"}, "metadata": {"said": TOKEN}}
    answers = [
        lambda _: scripts.http(200, {"error": {"code": 1, "message": TOKEN}}),
        lambda _: scripts.http(500, TOKEN.encode(), x_said=TOKEN),
        scripts.result(failed),
        lambda _: scripts.http(307, location=f"https://{TOKEN}.test/?{TOKEN}"),
        scripts.result({"message": {"parts": [{"text": TOKEN}]}}),
    ]
    agent = await scripted(scripts.agent(scripts.in_turn(*answers)))
    environ = {"T": TOKEN, "HARN_A2A_PUSH_URL": "https://me.test/", "HARN_A2A_PUSH_TOKEN": PUSH}
    agents = A2aClient(limits=limits, context=tls.client, environ=environ)
    auth = 'auth = { bearer_env = "T" }'
    package = agent_package(agent.authority, auth, FAST.replace("3", "4"), agents=agents)
    denied = await package.dispatch()
    assert (denied.status, denied.attempt_count) == ("failed", 4)
    assert (await package.dispatch()).result == "[redacted]"
    found = spans.get_finished_spans()
    names = [span.name for span in found]
    assert names.count("harn.a2a_hop") == names.count("harn.attempt") == len(answers)
    outcomes = [s.attributes["harn.outcome"] for s in found if s.name == "harn.a2a_hop"]
    assert outcomes == ["failed", "failed", "failed", "denied", "completed"]
    exported = encode_spans(found).SerializeToString()
    assert b"harn.a2a_hop" in exported
    assert TOKEN.encode() not in exported
    assert PUSH.encode() not in exported
    hops = [format(s.context.span_id, "016x") for s in found if s.name == "harn.a2a_hop"]
    assert [call.headers["traceparent"].split("-")[2] for call in agent.calls] == hops


async def test_without_tracing_an_agent_joins_the_trace_of_the_envelope(sdk_agent, agent_package):
    """It may differ from the sender's: an ingestion that was traced put its own span there."""
    work = SlowWork()
    agent = sdk_agent("1.0", work)
    package = agent_package(agent.authority, FOLLOW)
    joined = "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with package.worker():
        handle = await package.start(traceparent=joined)
        await package.phase(handle, "following")
        work.release.set()
        await handle.result()
    assert len(agent.headers) > 1
    assert {h["traceparent"].split("-")[1] for h in agent.headers} == {joined.split("-")[1]}


@pytest.mark.parametrize("task_id", ["t/../\x00\n'\"\u202e\U0001f4a5%s{}", "x" * 2000])
async def test_a_task_may_have_any_id_of_reasonable_length(
    *, task_id, scripted, scripts, agent_package
):
    working = {"id": task_id, "status": {"state": "TASK_STATE_WORKING"}}
    done = {"id": task_id, "status": {"state": "TASK_STATE_COMPLETED"}}
    answers = [scripts.result({"task": working}), scripts.result(working), scripts.result(done)]
    agent = await scripted(scripts.agent(scripts.in_turn(*answers)))
    outcome = await agent_package(agent.authority, FOLLOW).dispatch()
    assert (outcome.status, outcome.result["id"]) == ("succeeded", task_id)
    assert [call.rpc["params"]["id"] for call in agent.calls[1:]] == [task_id] * 2


async def test_answers_about_nothing_are_asked_for_only_until_the_time_is_up(
    scripted, scripts, agent_package
):
    """An agent that talks nonsense for ever does not hold a dispatch for ever."""
    working = {"id": "t1", "status": {"state": "TASK_STATE_WORKING"}}
    asked = []

    def answer(seen):
        asked.append(seen.rpc["method"])
        if len(asked) == 1:
            return scripts.result({"task": working})(seen)
        odd = (
            lambda: scripts.result({"id": "t2", "status": {"state": "completed"}})(seen),
            lambda: scripts.http(429, retry_after="Fri, 15 Jan 99999999999 08:00:30 GMT"),
            lambda: scripts.http(200, {"id": 0, "result": working}),
        )
        return odd[len(asked) % len(odd)]()

    agent = await scripted(scripts.agent(answer))
    package = agent_package(
        agent.authority,
        'a2a = { follow = true, timeout = "900ms", poll = "50ms" }',
        'retry = { max = 1, backoff = "immediate" }',
    )
    outcome = await package.dispatch()
    assert (outcome.status, outcome.attempt_count) == ("dlq", 1)
    assert outcome.error == "the agent's task did not end within 900 ms"
    assert asked.count("GetTask") > len(asked) / 2


async def test_a_cancellation_while_the_agent_is_asked_reaches_the_agent(
    scripted, scripts, agent_package
):
    """The agent keeps the question open; the task is cancelled, and recorded once."""
    working = {"id": "t1", "status": {"state": "TASK_STATE_WORKING"}}
    asked = asyncio.Event()

    async def script(seen, writer):
        if seen.method == "POST" and seen.rpc["method"] == "GetTask":
            asked.set()
            await asyncio.Event().wait()
        answer = scripts.result({"task": working} if not asked.is_set() else working)
        await scripts.agent(answer)(seen, writer)

    agent = await scripted(script)
    package = agent_package(agent.authority, FOLLOW, FAST)
    async with package.worker():
        handle = await package.start()
        await asyncio.wait_for(asked.wait(), 20)
        await handle.cancel()
        outcome = await handle.result()
    assert (outcome.status, outcome.attempt_count) == ("cancelled", 1)
    methods = [call.rpc["method"] for call in agent.calls]
    assert methods == ["SendMessage", "GetTask", "CancelTask"]
    attempts = await package.log.read("trigger.attempts")
    assert [record.payload["outcome"] for record in attempts] == ["cancelled"]
