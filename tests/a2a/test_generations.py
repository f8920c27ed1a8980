"""Both generations of the protocol, against agents made with a2a-sdk."""

from __future__ import annotations

import json

import pytest
from a2a.helpers.proto_helpers import new_text_message, new_text_part

from harn_temporal.a2a.failures import AgentRefusedError, TaskCanceledError, TaskFailedError

GENERATIONS = pytest.mark.parametrize(
    ("version", "send", "get", "cancel", "header", "role"),
    [
        ("1.0", "SendMessage", "GetTask", "CancelTask", "1.0", "ROLE_USER"),
        ("0.3", "message/send", "tasks/get", "tasks/cancel", "0.3.0", "user"),
    ],
)


async def finish(context, task):
    await task.start_work()
    await task.add_artifact([new_text_part('{"score": 7}')])
    await task.complete()


@GENERATIONS
async def test_a_message_is_answered_inline(
    *, version, send, get, cancel, header, role, sdk_agent, client, peer_at, message
):
    agent = sdk_agent(version)
    answer = await client.send(peer_at(agent.authority), message(), wait=True, within_s=10)
    assert answer.result == {"verdict": "fine"}
    assert not answer.pending
    assert agent.methods() == [send]
    said = agent.bodies[0]["params"]["message"]
    assert said["messageId"] == "trace_1.event_1.reviews"
    assert said["contextId"] == "trace_0190a1b2-c3d4-7abc-8def-0123456789ab"
    assert said["role"] == role
    assert json.loads(said["parts"][0]["text"]) == {
        "kind": "harn.trigger.dispatch",
        **said["metadata"],
        "event": {"id": "event_1", "headers": {}, "provider_payload": {"raw": {"n": 1}}},
    }
    assert said["metadata"] == {
        "message_id": "trace_1.event_1.reviews",
        "trace_id": "trace_0190a1b2-c3d4-7abc-8def-0123456789ab",
        "event_id": "event_1",
        "trigger_id": "reviews",
        "binding_key": "reviews@v1",
        "target_agent": "triage",
    }
    headers = agent.headers[0]
    assert headers["a2a-version"] == header
    assert headers["a2a-trace-id"] == "trace_0190a1b2-c3d4-7abc-8def-0123456789ab"
    assert headers["traceparent"].startswith("00-0190a1b2c3d47abc8def0123456789ab-")


@GENERATIONS
async def test_a_task_that_completes_gives_its_artifact(
    *, version, send, get, cancel, header, role, sdk_agent, client, peer_at, message
):
    agent = sdk_agent(version, finish)
    answer = await client.send(peer_at(agent.authority), message(), wait=True, within_s=10)
    assert answer.result == {"score": 7}
    assert answer.task is not None
    assert (answer.task.task_id, answer.task.state) == (agent.executor.tasks[0], "completed")


@GENERATIONS
async def test_a_pending_task_gives_its_handle_and_can_be_asked_about_and_cancelled(
    *, version, send, get, cancel, header, role, sdk_agent, client, peer_at, message
):
    async def work(context, task):
        await task.start_work()
        await task.requires_input(new_text_message("which branch?"))

    agent = sdk_agent(version, work)
    peer = peer_at(agent.authority)
    answer = await client.send(peer, message(), wait=True, within_s=10)
    assert answer.pending
    assert answer.asked == "which branch?"
    assert answer.result == {
        "kind": "a2a_task_handle",
        "task_id": agent.executor.tasks[0],
        "state": "input-required",
        "target_agent": "triage",
        "rpc_url": f"http://{agent.authority}/rpc",
        "card_url": f"http://{agent.authority}/.well-known/agent-card.json",
        "agent_id": "Reviewer",
        "protocol_version": header,
    }
    again = await client.task(peer, answer.task, trace_id="trace_1")
    assert (again.pending, again.task) == (True, answer.task)
    await client.cancel(peer, answer.task, trace_id="trace_1")
    assert agent.methods() == [send, get, cancel]
    assert agent.executor.cancelled == [answer.task.task_id]
    assert [headers["a2a-version"] for headers in agent.headers] == [header] * 3
    with pytest.raises(TaskCanceledError):
        await client.task(peer, answer.task, trace_id="trace_1")


@GENERATIONS
async def test_a_task_that_ends_badly_is_an_error_of_its_kind(
    *, version, send, get, cancel, header, role, sdk_agent, client, peer_at, message
):
    async def fail(context, task):
        await task.failed(new_text_message("out of ideas"))

    async def reject(context, task):
        await task.reject(new_text_message("not mine"))

    peer = peer_at(sdk_agent(version, fail).authority)
    with pytest.raises(TaskFailedError, match="out of ideas") as failed:
        await client.send(peer, message(), wait=True, within_s=10)
    assert failed.value.retryable
    peer = peer_at(sdk_agent(version, reject).authority)
    with pytest.raises(AgentRefusedError, match="not mine") as rejected:
        await client.send(peer, message(), wait=True, within_s=10)
    assert (rejected.value.retryable, rejected.value.status) == (False, "denied")


@GENERATIONS
async def test_over_tls_with_the_right_name(
    *, version, send, get, cancel, header, role, sdk_agent, client, peer_at, message, guard
):
    guard.names["reviewer.test"] = "127.0.0.1"
    agent = sdk_agent(version, tls_name="reviewer.test")
    peer = peer_at(agent.authority, allow_cleartext=False)
    answer = await client.send(peer, message(), wait=True, within_s=10)
    assert answer.result == {"verdict": "fine"}
    assert guard.refused == []


@GENERATIONS
async def test_without_waiting_the_agent_answers_at_once(
    *, version, send, get, cancel, header, role, sdk_agent, client, peer_at, message
):
    agent = sdk_agent(version, finish)
    peer = peer_at(agent.authority)
    answer = await client.send(peer, message(), wait=False, within_s=10)
    asked = agent.bodies[0]["params"]["configuration"]
    assert asked == ({"returnImmediately": True} if version == "1.0" else {"blocking": False})
    task = answer.task
    for _ in range(200):
        if not answer.pending:
            break
        answer = await client.task(peer, task, trace_id="trace_1")
    assert answer.result == {"score": 7}
