"""Where a hop may go: nowhere but to the authority asked for, and never from TLS to cleartext."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import socket

import pytest

from harn_temporal.a2a.client import A2aClient
from harn_temporal.a2a.discovery import Trail
from harn_temporal.a2a.failures import (
    AgentProtocolError,
    AgentRefusedError,
    AgentUnreachableError,
    CertificateError,
    DiscoveryError,
)

ELSEWHERE = [
    "http://evil.example/rpc",
    "https://evil.example/rpc",
    "http://169.254.169.254/latest/meta-data/",
    "http://10.0.0.1/rpc",
    "http://10.0.0.1:{peer}/rpc",
    "http://[fd00:ec2::254]/",
    "http://127.0.0.1:{sentinel}/rpc",
    "http://localhost:{sentinel}/rpc",
    "http://[::1]:{sentinel}/rpc",
    "http://127.1:{peer}/rpc",
    "http://127.1:{sentinel}/rpc",
    "http://2130706433:{sentinel}/rpc",
    "http://0x7f000001:{sentinel}/rpc",
    "http://127.0.0.2:{sentinel}/rpc",
    "http://0.0.0.0:{sentinel}/rpc",
    "http://[::ffff:127.0.0.1]:{sentinel}/rpc",
    "http://localhost.localdomain:{peer}/rpc",
    "http://localhost.:{peer}/rpc",
    "http://127.0.0.1:{peer}@127.0.0.1:{sentinel}/rpc",
    "http://user:secret@127.0.0.1:{peer}/rpc",
    "//127.0.0.1:{sentinel}/rpc",
    "ftp://127.0.0.1:{peer}/rpc",
    "file:///etc/passwd",
]
"""URLs for a card or a redirect of the agent at 127.0.0.1:{peer}; {sentinel} is another port."""


@pytest.fixture
async def sentinel(scripted, scripts):
    """A server that nothing may reach; it would answer like an agent."""
    return await scripted(scripts.agent(scripts.result({"parts": [{"text": "reached"}]})))


def is_a_place(place):
    return not place.startswith("//")


@pytest.mark.parametrize("place", [place for place in ELSEWHERE if is_a_place(place)])
@pytest.mark.parametrize("generation", ["1.0", "0.3"])
async def test_a_card_that_points_elsewhere_is_denied(
    *, place, generation, client, peer_at, message, scripted, scripts, sentinel, guard
):
    make = scripts.card_1_0 if generation == "1.0" else scripts.card_0_3

    def card(url):
        port = url.rpartition(":")[2].partition("/")[0]
        return make(place.format(peer=port, sentinel=sentinel.port))

    agent = await scripted(scripts.agent(lambda _: b"", card))
    with pytest.raises(AgentRefusedError, match="not the authority") as error:
        await client.send(peer_at(agent.authority), message(), wait=True, within_s=5)
    assert (error.value.retryable, error.value.status) == (False, "denied")
    assert error.value.error_class == "auth_failed"
    assert "secret" not in str(error.value)
    assert (sentinel.connections, guard.refused, agent.calls) == (0, [], [])


@pytest.mark.parametrize("place", [*ELSEWHERE, "https://127.0.0.1:{peer}/"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_redirect_elsewhere_is_denied(
    *, place, status, method, client, peer_at, message, scripted, scripts, sentinel, guard
):
    async def script(seen, writer):
        if seen.method != method:
            await scripts.agent(lambda _: b"")(seen, writer)
            return
        port = seen.headers["host"].rpartition(":")[2]
        where = place.format(peer=port, sentinel=sentinel.port)
        writer.write(scripts.http(status, location=where))

    agent = await scripted(script)
    with pytest.raises(AgentRefusedError, match="redirects to") as error:
        await client.send(peer_at(agent.authority), message(), wait=True, within_s=5)
    assert not error.value.retryable
    assert "secret" not in str(error.value)
    assert (sentinel.connections, guard.refused) == (0, [])
    assert len([seen for seen in agent.seen if seen.method == method]) == 1


async def test_redirects_within_the_authority_are_followed(
    client, peer_at, message, scripted, scripts
):
    async def script(seen, writer):
        if seen.path == "/.well-known/agent-card.json":
            writer.write(scripts.http(302, location="/card"))
        elif seen.path == "/card":
            where = f"http://localhost:{seen.headers['host'].rpartition(':')[2]}/rpc"
            writer.write(scripts.http(200, scripts.card_1_0(where)))
        elif seen.path == "/rpc":
            writer.write(scripts.http(307, location="/rpc/"))
        else:
            writer.write(scripts.result({"parts": [{"text": seen.method}]})(seen))

    agent = await scripted(script)
    answer = await client.send(peer_at(agent.authority), message(), wait=True, within_s=5)
    assert answer.result == "POST"
    assert agent.calls[0].body == agent.calls[1].body


async def test_redirects_in_a_circle_end(client, peer_at, message, scripted, scripts):
    async def script(seen, writer):
        writer.write(scripts.http(302, location=seen.path))

    agent = await scripted(script)
    with pytest.raises(DiscoveryError, match="redirects more than 5 times"):
        await client.send(peer_at(agent.authority), message(), wait=True, within_s=5)
    assert len(agent.seen) == 4 * 6


@pytest.mark.parametrize(
    ("asked", "card_host"),
    [("127.0.0.1", "localhost"), ("localhost", "127.0.0.1"), ("127.0.0.1", "[::1]")],
)
async def test_loopback_names_are_equal_and_the_port_counts(
    *, asked, card_host, client, peer_at, scripted, scripts
):
    def card(url):
        return scripts.card_1_0(f"http://{card_host}:{url.rpartition(':')[2]}")

    agent = await scripted(scripts.agent(lambda _: b"", card))
    peer = peer_at(f"{asked}:{agent.port}")
    _, _, url = await client.look_up(peer, Trail())
    assert url.port == agent.port


async def test_cleartext_needs_the_bindings_word(client, peer_at, message, scripted, scripts):
    agent = await scripted(scripts.agent(lambda _: b""))
    peer = peer_at(agent.authority, allow_cleartext=False)
    with pytest.raises(AgentUnreachableError):
        await client.send(peer, message(), wait=True, within_s=5)
    assert agent.seen == []


async def test_a_card_over_tls_may_not_lead_to_cleartext(
    *, client, peer_at, message, scripted, scripts, tls, guard
):
    guard.names["reviewer.test"] = "127.0.0.1"

    def card(url):
        return scripts.card_1_0(url.replace("https:", "http:"))

    agent = await scripted(scripts.agent(lambda _: b"", card), tls.server("reviewer.test"))
    authority = f"reviewer.test:{agent.port}"
    peer = peer_at(authority, allow_cleartext=False)
    with pytest.raises(AgentRefusedError, match="cleartext HTTP is refused unless"):
        await client.send(peer, message(), wait=True, within_s=5)
    with pytest.raises(AgentRefusedError, match="not downgraded"):
        await client.send(peer_at(authority), message(), wait=True, within_s=5)
    assert agent.calls == []


@pytest.fixture
async def both_at_one_port(scripted, scripts, tls):
    """An agent that takes TLS, with a certificate for another name, and cleartext at one port."""
    answer = scripts.result({"parts": [{"text": "plain"}]})
    secure = await scripted(scripts.agent(answer), tls.server("other.test"))
    plain = await scripted(scripts.agent(answer))
    tasks = set()

    async def copy(reader, writer):
        with contextlib.suppress(ConnectionError):
            while part := await reader.read(65536):
                writer.write(part)
                await writer.drain()
        writer.close()

    async def forward(reader, writer):
        tasks.add(asyncio.current_task())
        first = await reader.read(1)
        behind = secure if first == b"\x16" else plain
        back_reader, back_writer = await asyncio.open_connection("127.0.0.1", behind.port)
        back_writer.write(first)
        try:
            await asyncio.gather(copy(reader, back_writer), copy(back_reader, writer))
        finally:
            writer.transport.abort()
            back_writer.transport.abort()

    server = await asyncio.start_server(forward, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1], plain
    server.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("host", ["reviewer.test", "127.0.0.1", "localhost"])
async def test_a_certificate_for_another_name_never_leads_to_http(
    *, host, client, peer_at, message, both_at_one_port, guard
):
    guard.names["reviewer.test"] = "127.0.0.1"
    port, plain = both_at_one_port
    with pytest.raises(CertificateError, match="no valid certificate") as error:
        await client.send(peer_at(f"{host}:{port}"), message(), wait=True, within_s=5)
    assert error.value.retryable
    assert plain.connections == 0


async def test_a_broken_handshake_of_a_named_host_never_leads_to_http(
    *, client, peer_at, message, scripted, scripts, guard
):
    """The host speaks plain HTTP; a name that is not loopback might be intercepted."""
    guard.names["reviewer.test"] = "127.0.0.1"
    agent = await scripted(scripts.agent(scripts.result({"parts": [{"text": "plain"}]})))
    with pytest.raises(AgentUnreachableError):
        await client.send(peer_at(f"reviewer.test:{agent.port}"), message(), wait=True, within_s=5)
    assert (agent.connections, agent.seen) == (1, [])


async def test_a_refused_connection_of_a_named_host_leads_to_http_on_its_port(
    peer_at, tls, limits, guard
):
    """Ports 443 and 80 cannot be had in a test: what is tried is seen in the trail."""
    guard.names["reviewer.test"] = "127.0.0.1"
    trail = Trail()
    client = A2aClient(limits=limits, context=tls.client)
    with pytest.raises(AgentUnreachableError, match=r"https://reviewer\.test/"):
        await client.look_up(peer_at("reviewer.test"), trail)
    assert [url for url, _ in trail.steps] == [
        "https://reviewer.test/.well-known/agent-card.json",
        "http://reviewer.test/.well-known/agent-card.json",
    ]
    trail = Trail()
    with pytest.raises(AgentUnreachableError):
        await client.look_up(peer_at("reviewer.test", allow_cleartext=False), trail)
    assert len(trail.steps) == 1


async def test_a_name_that_does_not_resolve_is_no_refused_connection(client, peer_at, guard):
    trail = Trail()
    with pytest.raises(AgentUnreachableError, match="does not resolve"):
        await client.look_up(peer_at("nowhere.test"), trail)
    assert len(trail.steps) == 1
    assert guard.refused == ["nowhere.test"]


@pytest.mark.parametrize("address", ["169.254.169.254", "fd00:ec2::254", "fe80::1"])
async def test_a_name_that_hides_a_metadata_service_is_denied(address, client, peer_at, guard):
    guard.names["reviewer.test"] = address
    with pytest.raises(AgentRefusedError, match="where no agent can be"):
        await client.look_up(peer_at("reviewer.test"), Trail())
    assert guard.refused == []


async def test_no_proxy_and_no_netrc(
    *, client, peer_at, message, scripted, scripts, sentinel, monkeypatch, tmp_path
):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password hidden\n")
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, sentinel.url)
    agent = await scripted(scripts.agent(scripts.result({"parts": [{"text": "direct"}]})))
    answer = await client.send(peer_at(agent.authority), message(), wait=True, within_s=5)
    assert answer.result == "direct"
    assert sentinel.connections == 0
    assert all("authorization" not in seen.headers for seen in agent.seen)


async def test_no_cookie_is_kept(client, peer_at, message, scripted, scripts):
    async def script(seen, writer):
        if seen.method == "GET":
            card = scripts.card_1_0(f"http://{seen.headers['host']}/rpc")
            writer.write(scripts.http(200, card, set_cookie="session=1; Path=/"))
        else:
            writer.write(scripts.result({"parts": [{"text": "ok"}]})(seen))

    agent = await scripted(script)
    await client.send(peer_at(agent.authority), message(), wait=True, within_s=5)
    assert [seen.headers.get("cookie") for seen in agent.seen] == [None, None]


async def test_a_task_out_of_a_history_is_held_to_the_same_rules(
    *, client, peer_at, message, scripted, scripts, sentinel
):
    status = {"id": "t1", "status": {"state": "TASK_STATE_WORKING"}}
    agent = await scripted(scripts.agent(scripts.result({"task": status})))
    peer = peer_at(agent.authority)
    answer = await client.send(peer, message(), wait=True, within_s=5)
    moved = answer.task.model_copy(update={"rpc_url": sentinel.url})
    with pytest.raises(AgentRefusedError):
        await client.task(peer, moved, trace_id="t")
    strict = dataclasses.replace(peer, allow_cleartext=False)
    with pytest.raises(AgentRefusedError):
        await client.task(strict, answer.task, trace_id="t")
    assert sentinel.connections == 0


async def test_a_broken_url_in_a_card_is_told(client, peer_at, message, scripted, scripts):
    agent = await scripted(
        scripts.agent(lambda _: b"", lambda _: scripts.card_1_0("http://a:port/"))
    )
    with pytest.raises(AgentProtocolError, match="broken URL"):
        await client.send(peer_at(agent.authority), message(), wait=True, within_s=5)


def test_the_guard_refuses_and_counts(guard):
    with socket.socket() as sock, pytest.raises(ConnectionAbortedError):
        sock.connect(("192.0.2.1", 80))
    assert guard.refused == [("192.0.2.1", 80)]
