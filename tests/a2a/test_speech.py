"""What is sent besides the message: push, actor chain, traces, secrets; and what comes back."""

from __future__ import annotations

import logging
import re

import pytest

from harn_temporal.a2a.actor_chain import checked_chain
from harn_temporal.a2a.answers import Completed, read_answer
from harn_temporal.a2a.client import A2aClient
from harn_temporal.a2a.failures import AgentRefusedError, AgentRpcError, CredentialError
from harn_temporal.a2a.messages import message_id
from harn_temporal.a2a.tracing import trace_headers

TOKEN = "tok-9f8e7d6c5b4a"
PUSH_TOKEN = "push-1a2b3c4d5e6f"


def client_with(limits, tls, **environ):
    return A2aClient(limits=limits, context=tls.client, environ=environ)


@pytest.mark.parametrize(
    ("generation", "expected"),
    [
        (
            "1.0",
            {
                "returnImmediately": True,
                "taskPushNotificationConfig": {"url": "https://me.test/push", "token": PUSH_TOKEN},
            },
        ),
        (
            "0.3",
            {
                "blocking": False,
                "pushNotificationConfig": {"url": "https://me.test/push", "token": PUSH_TOKEN},
            },
        ),
    ],
)
async def test_push_instead_of_blocking(
    *, generation, expected, limits, tls, peer_at, message, scripted, scripts
):
    card = scripts.card_1_0 if generation == "1.0" else scripts.card_0_3
    agent = await scripted(scripts.agent(scripts.result({"parts": [{"text": "ok"}]}), card))
    client = client_with(
        limits, tls, HARN_A2A_PUSH_URL="https://me.test/push", HARN_A2A_PUSH_TOKEN=PUSH_TOKEN
    )
    await client.send(peer_at(agent.authority), message(), wait=True, within_s=5)
    assert agent.calls[0].rpc["params"]["configuration"] == expected


@pytest.mark.parametrize(
    ("generation", "expected"), [("1.0", {"returnImmediately": False}), ("0.3", {"blocking": True})]
)
async def test_blocking_without_push(
    *, generation, expected, client, peer_at, message, scripted, scripts
):
    card = scripts.card_1_0 if generation == "1.0" else scripts.card_0_3
    agent = await scripted(scripts.agent(scripts.result({"parts": [{"text": "ok"}]}), card))
    await client.send(peer_at(agent.authority), message(), wait=True, within_s=5)
    assert agent.calls[0].rpc["params"]["configuration"] == expected


@pytest.mark.parametrize("generation", ["1.0", "0.3"])
async def test_sdk_agents_take_a_push_configuration(
    *, generation, limits, tls, sdk_agent, peer_at, message
):
    agent = sdk_agent(generation)
    client = client_with(limits, tls, HARN_A2A_PUSH_URL="https://me.test/push")
    answer = await client.send(peer_at(agent.authority), message(), wait=True, within_s=10)
    assert answer.result == {"verdict": "fine"}


async def test_the_actor_chain_is_told_twice(client, peer_at, message, scripted, scripts):
    chain = checked_chain(
        {"sub": "agent-b", "scopes": ["review"], "act": {"sub": "agent-a"}, "extra": 1}
    )
    agent = await scripted(scripts.agent(scripts.result({"parts": [{"text": "ok"}]})))
    said = message(actor_chain=chain)
    await client.send(peer_at(agent.authority), said, wait=True, within_s=5)
    told = agent.calls[0].rpc["params"]["message"]
    expected = {"sub": "agent-b", "scopes": ["review"], "act": {"sub": "agent-a"}, "extra": 1}
    assert told["metadata"]["actor_chain"] == expected
    assert '"actor_chain":{"act":{"sub":"agent-a"}' in told["parts"][0]["text"]


@pytest.mark.parametrize(
    "chain", ["me", {"act": {"sub": "a"}}, {"sub": "a", "act": "b"}, {"sub": 1}]
)
def test_a_malformed_actor_chain_is_sent_to_nobody(chain):
    with pytest.raises(AgentRefusedError, match="malformed"):
        checked_chain(chain)


def test_message_ids():
    ids = {"trace_id": "t", "event_id": "e", "trigger_id": "g"}
    assert message_id(**ids, replay=None) == "t.e.g"
    assert message_id(**ids, replay=2) == "t.e.g.r2"


def test_a_trace_is_joined_or_begun():
    sender = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
    joined = trace_headers("trace_1", {"traceparent": sender})["traceparent"]
    assert re.fullmatch(r"00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-00", joined)
    assert joined != sender
    begun = trace_headers("trace_0190a1b2-c3d4-7abc-8def-0123456789ab", {"traceparent": "x"})
    assert begun["traceparent"].startswith("00-0190a1b2c3d47abc8def0123456789ab-")
    dispatched = "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    of_envelope = trace_headers("trace_1", {"traceparent": sender}, dispatched)["traceparent"]
    assert of_envelope.startswith("00-1af7651916cd43dd8448eb211c80319c-")
    assert of_envelope != dispatched
    unusable = trace_headers("trace_1", {"traceparent": sender}, "00-0-0-00")["traceparent"]
    assert unusable.startswith("00-0af7651916cd43dd8448eb211c80319c-")
    odd = trace_headers("träce\r\nx: y", {})
    assert odd["A2A-Trace-Id"] == "tr%C3%A4ce%0D%0Ax:%20y"


async def test_a_token_goes_to_the_agent_and_into_nothing_else(
    *, limits, tls, peer_at, message, scripted, scripts, caplog
):
    """The agent repeats the token in its answers; it is not in ours, nor in any log line."""
    caplog.set_level(logging.DEBUG)
    client = client_with(limits, tls, REVIEWER_TOKEN=TOKEN + "\n")
    answers = scripts.in_turn(
        scripts.result({"parts": [{"text": f'{{"{TOKEN}": ["{TOKEN}"]}}'}]}),
        lambda seen: scripts.http(200, {"error": {"code": 1, "message": f"no {TOKEN}"}}),
        lambda seen: scripts.http(403),
    )
    agent = await scripted(scripts.agent(answers))
    peer = peer_at(agent.authority, bearer_env="REVIEWER_TOKEN")
    answer = await client.send(peer, message(), wait=True, within_s=5)
    assert answer.result == {"[redacted]": ["[redacted]"]}
    with pytest.raises(AgentRpcError) as error:
        await client.send(peer, message(), wait=True, within_s=5)
    assert str(error.value) == "the agent answers with JSON-RPC error 1: no [redacted]"
    assert error.value.__cause__ is None
    with pytest.raises(AgentRefusedError):
        await client.send(peer, message(), wait=True, within_s=5)
    assert [call.headers.get("authorization") for call in agent.calls] == [f"Bearer {TOKEN}"] * 3
    cards = [seen for seen in agent.seen if seen.method == "GET"]
    assert all("authorization" not in seen.headers for seen in cards)
    assert TOKEN not in caplog.text
    assert all(TOKEN not in str(record.__dict__) for record in caplog.records)
    assert TOKEN not in repr(client) + repr(peer)


async def test_a_token_that_is_repeated_outside_of_the_body_is_nowhere_either(
    *, limits, tls, peer_at, message, scripted, scripts, caplog
):
    caplog.set_level(logging.DEBUG)

    async def script(seen, writer):
        if seen.method == "GET" and "authorization" not in seen.headers:
            writer.write(scripts.http(401))
            return
        name = {"name": TOKEN, "id": TOKEN}
        body = (
            scripts.card_1_0(f"http://{seen.headers['host']}/rpc") | name
            if seen.method == "GET"
            else {"id": seen.rpc["id"], "result": {"id": "t", "status": {"state": "working"}}}
        )
        said = scripts.http(200, body, x_echo=TOKEN)
        writer.write(said.replace(b"200 X", f"200 {TOKEN}".encode(), 1))

    client = client_with(limits, tls, REVIEWER_TOKEN=TOKEN)
    agent = await scripted(script)
    peer = peer_at(agent.authority, bearer_env="REVIEWER_TOKEN")
    answer = await client.send(peer, message(), wait=True, within_s=5)
    assert answer.result["agent_id"] == "[redacted]"
    assert TOKEN not in str(answer)
    assert TOKEN not in caplog.text


async def test_a_card_that_asks_for_the_token_gets_it(
    *, limits, tls, peer_at, message, scripted, scripts
):
    async def script(seen, writer):
        if seen.method == "GET" and "authorization" not in seen.headers:
            writer.write(scripts.http(401))
        else:
            await scripts.agent(scripts.result({"parts": [{"text": "ok"}]}))(seen, writer)

    client = client_with(limits, tls, REVIEWER_TOKEN=TOKEN)
    agent = await scripted(script)
    peer = peer_at(agent.authority, bearer_env="REVIEWER_TOKEN")
    assert (await client.send(peer, message(), wait=True, within_s=5)).result == "ok"
    with pytest.raises(AgentRefusedError, match="HTTP 401"):
        await client.send(peer_at(agent.authority), message(), wait=True, within_s=5)


@pytest.mark.parametrize(
    ("environ", "text"),
    [
        ({}, "is not set on this worker"),
        ({"REVIEWER_TOKEN": "  "}, "is not set on this worker"),
        ({"REVIEWER_TOKEN": "se\ncret"}, "no HTTP header can"),
        ({"REVIEWER_TOKEN": "sécret"}, "no HTTP header can"),
    ],
)
async def test_a_missing_or_malformed_token_is_told_before_anything_is_sent(
    *, environ, text, limits, tls, peer_at, message, scripted, scripts
):
    agent = await scripted(scripts.agent(lambda _: b""))
    peer = peer_at(agent.authority, bearer_env="REVIEWER_TOKEN")
    with pytest.raises(CredentialError, match=text) as error:
        await client_with(limits, tls, **environ).send(peer, message(), wait=True, within_s=5)
    assert "cret" not in str(error.value)
    assert error.value.retryable
    assert agent.connections == 0


def said(text, role="agent"):
    return {"role": role, "parts": [{"kind": "text", "text": text}]}


@pytest.mark.parametrize(
    ("task", "result"),
    [
        ({"artifacts": [said("1"), said('{"a": 2}')], "history": [said("3")]}, {"a": 2}),
        ({"artifacts": [{"parts": [{"text": "x"}, {"text": "y"}]}]}, "y"),
        ({"artifacts": [{"parts": [{"data": {}}]}], "status": {"message": said("s")}}, "s"),
        ({"history": [said("old"), said("agent's"), said("mine", "user")]}, "agent's"),
        ({"history": [said("a", "ROLE_AGENT"), said("u", "ROLE_USER")]}, "a"),
        ({"artifacts": [said("NaN")]}, "NaN"),
        ({"artifacts": [said("null")]}, None),
    ],
)
def test_the_inline_result_is_the_last_agent_text(task, result):
    task = {"id": "t", **task, "status": {"state": "completed", **task.get("status", {})}}
    assert read_answer(task) == Completed(result, "t")
    wrapped = task | {"status": task["status"] | {"state": "TASK_STATE_COMPLETED"}}
    assert read_answer({"task": wrapped}) == Completed(result, "t")


def test_without_text_the_result_is_the_task_or_the_message_itself():
    task = {"id": "t", "status": {"state": "completed"}, "artifacts": [{"parts": [{"data": 1}]}]}
    assert read_answer(task) == Completed(task, "t")
    message = {"kind": "message", "role": "agent", "parts": [{"kind": "data", "data": {"n": 1}}]}
    assert read_answer(message) == Completed(message)
