"""Peers that are down, slow, huge or wrong: each is told apart, and none outlasts its bound."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
import time

import pytest

from harn_temporal.a2a.client import A2aClient
from harn_temporal.a2a.failures import (
    AgentHttpError,
    AgentProtocolError,
    AgentRefusedError,
    AgentRpcError,
    AgentTimeoutError,
    AgentUnreachableError,
    ConnectionRefusedByAgentError,
    DiscoveryError,
)

NOW_MS = 1_800_000_000_000


@pytest.fixture
def ask(client, peer_at, message):
    async def send(peer, *, within_s=5.0, client=client):
        return await client.send(peer_at(peer.authority), message(), wait=True, within_s=within_s)

    return send


async def test_nothing_listens(client, peer_at, message):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        peer = peer_at(f"127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(ConnectionRefusedByAgentError, match="connection refused") as error:
            await client.send(peer, message(), wait=True, within_s=5)
    assert (error.value.retryable, error.value.status) == (True, "failed")


async def test_a_peer_that_never_answers_a_call(ask, scripted, scripts):
    async def script(seen, writer):
        if seen.method == "POST":
            await asyncio.Event().wait()
        await scripts.agent(lambda _: b"")(seen, writer)

    peer = await scripted(script)
    with pytest.raises(AgentTimeoutError, match=r"within 0\.3 s") as error:
        await ask(peer, within_s=0.3)
    assert (error.value.status, error.value.error_class) == ("timeout", "handler_timeout")


async def test_a_peer_that_takes_the_connection_and_never_sends_a_card(
    scripted, limits, tls, peer_at, message
):
    async def script(seen, writer):
        await asyncio.Event().wait()

    peer = await scripted(script)
    client = A2aClient(limits=dataclasses.replace(limits, card_s=0.3), context=tls.client)
    with pytest.raises(AgentTimeoutError, match=r"agent-card\.json did not answer within"):
        await client.send(peer_at(peer.authority), message(), wait=True, within_s=5)
    assert len(peer.seen) == 1


@pytest.mark.parametrize("place", ["GET", "POST"])
async def test_a_peer_that_drips_outlasts_no_deadline(
    *, place, scripted, scripts, limits, tls, peer_at, message
):
    """Each byte comes well within any read timeout; the bound is on the whole exchange."""
    dripped = 0

    async def script(seen, writer):
        nonlocal dripped
        if seen.method != place:
            await scripts.agent(lambda _: b"")(seen, writer)
            return
        writer.write(b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\n\r\n")
        while True:
            writer.write(b" ")
            await writer.drain()
            dripped += 1
            await asyncio.sleep(0.02)

    peer = await scripted(script)
    client = A2aClient(limits=dataclasses.replace(limits, card_s=0.5), context=tls.client)
    began = time.monotonic()
    with pytest.raises(AgentTimeoutError):
        await client.send(peer_at(peer.authority), message(), wait=True, within_s=0.5)
    assert time.monotonic() - began < 3
    assert dripped > 3


async def test_headers_that_drip_outlast_no_deadline(ask, scripted, scripts):
    async def script(seen, writer):
        if seen.method == "GET":
            await scripts.agent(lambda _: b"")(seen, writer)
            return
        writer.write(b"HTTP/1.1 200 X\r\nx-slow: ")
        while True:
            writer.write(b"a")
            await writer.drain()
            await asyncio.sleep(0.02)

    with pytest.raises(AgentTimeoutError):
        await ask(await scripted(script), within_s=0.4)


@pytest.mark.parametrize("told", [True, False])
async def test_a_hundred_megabytes_are_not_read(told, ask, scripted, scripts):
    sent = 0

    async def script(seen, writer):
        nonlocal sent
        if seen.method == "GET":
            await scripts.agent(lambda _: b"")(seen, writer)
            return
        length = b"content-length: 104857600\r\n" if told else b""
        writer.write(b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\n" + length + b"\r\n")
        for _ in range(1600):
            writer.write(b" " * 65536)
            await writer.drain()
            sent += 65536

    peer = await scripted(script)
    with pytest.raises(AgentProtocolError, match="sent more than 8388608 bytes"):
        await ask(peer, within_s=30)
    assert sent < 40_000_000


async def test_a_reply_of_exactly_the_limit_is_taken(
    *, scripted, scripts, limits, tls, peer_at, message
):
    def padded(size):
        def answer(seen):
            head = b'{"id": "%s", "result": {"parts": [{"text": "ok"}]}}' % seen.rpc["id"].encode()
            return scripts.http(200, head + b" " * (size - len(head)))

        return answer

    client = A2aClient(limits=dataclasses.replace(limits, reply_bytes=2000), context=tls.client)
    peer = await scripted(scripts.agent(padded(2000)))
    answer = await client.send(peer_at(peer.authority), message(), wait=True, within_s=5)
    assert answer.result == "ok"
    peer = await scripted(scripts.agent(padded(2001)))
    with pytest.raises(AgentProtocolError, match="sent more than 2000 bytes"):
        await client.send(peer_at(peer.authority), message(), wait=True, within_s=5)


async def test_a_card_above_a_mebibyte_is_none(ask, scripted, scripts):
    def card(url):
        return scripts.card_1_0(url) | {"description": "x" * (1024 * 1024)}

    peer = await scripted(scripts.agent(lambda _: b"", card))
    with pytest.raises(DiscoveryError, match="sent more than 1048576 bytes"):
        await ask(peer)
    assert peer.calls == []


async def test_a_compressed_reply_is_refused_unread(ask, scripted, scripts):
    peer = await scripted(
        scripts.agent(lambda _: scripts.http(200, b"\x1f\x8b", content_encoding="gzip"))
    )
    with pytest.raises(AgentProtocolError, match="encoded as gzip"):
        await ask(peer)
    assert {seen.headers["accept-encoding"] for seen in peer.seen} == {"identity"}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"{", "not JSON"),
        (b"", "not JSON"),
        (b'"\xc3\x28"', "not UTF-8"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"result": ' + b"[" * 150 + b"]" * 150 + b"}", "nested too deeply"),
        (b'{"result": NaN}', "NaN"),
        (b"[1]", "no JSON object"),
        (b"{}", "neither result nor error"),
        (b'{"id": "another", "result": {}}', "was not sent"),
        (b'{"id": ["x"], "result": {}}', "was not sent"),
        (b'{"result": 7}', "neither a message nor a task"),
        (b'{"result": {"parts": 1}}', "neither a message nor a task"),
        (b'{"result": {"id": "t", "status": {"state": "sleeping"}}}', "unknown state"),
        (b'{"result": {"id": "t", "status": {"state": ["working"]}}}', "unknown state"),
        (b'{"result": {"status": {"state": "working"}}}', "has no id"),
    ],
)
async def test_garbage_says_which(body, text, ask, scripted, scripts):
    peer = await scripted(scripts.agent(lambda _: scripts.http(200, body)))
    with pytest.raises(AgentProtocolError, match=text) as error:
        await ask(peer)
    assert (error.value.retryable, error.value.status) == (True, "failed")


async def test_what_is_no_http_at_all(ask, scripted, scripts):
    peer = await scripted(scripts.agent(lambda _: b"SSH-2.0-OpenSSH_9.6\r\n\r\n"))
    with pytest.raises(AgentProtocolError, match="does not speak HTTP"):
        await ask(peer)


async def test_a_peer_that_hangs_up(ask, scripted, scripts):
    async def script(seen, writer):
        if seen.method == "GET":
            await scripts.agent(lambda _: b"")(seen, writer)
            return
        writer.transport.abort()

    with pytest.raises((AgentUnreachableError, AgentProtocolError)) as error:
        await ask(await scripted(script))
    assert error.value.retryable


async def test_a_json_rpc_error_in_a_200(ask, scripted, scripts):
    error = {"code": -32603, "message": "the model is out"}
    peer = await scripted(scripts.agent(lambda _: scripts.http(200, {"error": error})))
    with pytest.raises(AgentRpcError, match="JSON-RPC error -32603: the model is out") as found:
        await ask(peer)
    assert (found.value.code, found.value.retryable) == (-32603, True)


async def test_a_500_is_retryable_and_says_what_the_agent_said(ask, scripted, scripts):
    body = {"error": {"code": -32000, "message": "boom"}}
    peer = await scripted(scripts.agent(lambda _: scripts.http(500, body)))
    with pytest.raises(AgentHttpError, match=r"HTTP 500: .*boom") as error:
        await ask(peer)
    assert (error.value.error_class, error.value.retryable) == ("provider_5xx", True)
    assert error.value.retry_after_ms is None


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("7", 7_000),
        ("Fri, 15 Jan 2027 08:00:30 GMT", 30_000),
        ("Fri, 15 Jan 2027 07:00:00 GMT", 0),
        ("99999999999999999999", 30 * 86_400_000),
        ("soon", None),
        ("-1", None),
    ],
)
async def test_retry_after(
    *, status, value, expected, scripted, scripts, limits, tls, peer_at, message
):
    """NOW_MS is 2027-01-15T08:00:00Z."""
    client = A2aClient(limits=limits, context=tls.client, clock=lambda: NOW_MS)
    peer = await scripted(scripts.agent(lambda _: scripts.http(status, retry_after=value)))
    with pytest.raises(AgentHttpError, match=f"HTTP {status}") as error:
        await client.send(peer_at(peer.authority), message(), wait=True, within_s=5)
    assert error.value.retry_after_ms == expected


async def test_retry_after_of_the_card_counts_too_and_other_statuses_have_none(
    ask, scripted, scripts
):
    async def busy(seen, writer):
        writer.write(scripts.http(503, retry_after="9"))

    peer = await scripted(busy)
    with pytest.raises(AgentHttpError) as error:
        await ask(peer)
    assert error.value.retry_after_ms == 9_000
    assert len(peer.seen) == 1
    peer = await scripted(scripts.agent(lambda _: scripts.http(500, retry_after="9")))
    with pytest.raises(AgentHttpError) as error:
        await ask(peer)
    assert error.value.retry_after_ms is None


@pytest.mark.parametrize("kind", ["text/html", "text/event-stream", "application/octet-stream"])
async def test_a_wrong_content_type(kind, ask, scripted, scripts):
    def answer(seen):
        result = {"parts": [{"text": "ok"}]}
        return scripts.http(200, {"id": seen.rpc["id"], "result": result}, kind=kind)

    with pytest.raises(AgentProtocolError, match=kind):
        await ask(await scripted(scripts.agent(answer)))


@pytest.mark.parametrize("status", [401, 403])
async def test_unauthorized_is_denied(status, ask, scripted, scripts):
    peer = await scripted(scripts.agent(lambda _: scripts.http(status)))
    with pytest.raises(AgentRefusedError, match=f"HTTP {status}") as error:
        await ask(peer)
    assert (error.value.retryable, error.value.status) == (False, "denied")
    assert len(peer.calls) == 1
