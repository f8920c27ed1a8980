"""Which interface of a card is spoken, where cards are looked for, and how long they are kept."""

from __future__ import annotations

import contextlib

import httpx
import pytest

from harn_temporal.a2a.card_cache import SIZE, CardCache, freshness_s
from harn_temporal.a2a.cards import choose, read_card
from harn_temporal.a2a.client import A2aClient
from harn_temporal.a2a.discovery import PATHS
from harn_temporal.a2a.failures import (
    AgentHttpError,
    AgentProtocolError,
    AgentRpcError,
    AgentUnreachableError,
    DiscoveryError,
)
from harn_temporal.a2a.target import AgentTarget
from harn_temporal.errors import UsageError

CARD_URL = httpx.URL("https://a.test/.well-known/agent-card.json")


def supported(url, binding, version):
    return {"url": url, "protocolBinding": binding, "protocolVersion": version}


ONE = {"supportedInterfaces": [supported("https://one", "JSONRPC", "1.0")]}
LEGACY = {"supportedInterfaces": [supported("https://legacy", "JSONRPC", "0.3.0")]}
MAIN = {"url": "https://main", "preferredTransport": "jsonrpc", "protocolVersion": "0.3.0"}
GRPC = {"url": "https://grpc", "preferredTransport": "GRPC", "protocolVersion": "0.3.2"}
ADDED = {
    "additionalInterfaces": [
        {"url": "https://rest", "transport": "HTTP+JSON"},
        {"url": "https://added", "transport": "JSONRPC"},
    ]
}


@pytest.mark.parametrize(
    ("card", "url", "generation"),
    [
        (ONE, "https://one", "1.0"),
        ({"supportedInterfaces": [supported("https://x", "jsonrpc", "1.4")]}, "https://x", "1.0"),
        (MAIN, "https://main", "0.3"),
        (MAIN | ADDED, "https://main", "0.3"),
        (GRPC | ADDED, "https://added", "0.3"),
        (LEGACY, "https://legacy", "0.3"),
        (LEGACY | GRPC, "https://legacy", "0.3"),
        (LEGACY | MAIN, "https://main", "0.3"),
        (MAIN | ADDED | ONE, "https://one", "1.0"),
        (
            {
                "supportedInterfaces": [
                    supported("https://g", "GRPC", "1.0"),
                    supported("https://l", "JSONRPC", "0.3"),
                    supported("https://o", "JSONRPC", "1.0"),
                ]
            },
            "https://o",
            "1.0",
        ),
        ({"url": "https://main", "protocolVersion": "0.3.0"}, "https://main", "0.3"),
    ],
)
def test_the_interface_that_is_spoken(card, url, generation):
    offer = choose(read_card(CARD_URL, card))
    assert (offer.url, offer.generation) == (url, generation)


@pytest.mark.parametrize(
    ("card", "named"),
    [
        ({}, "no interface"),
        (GRPC, "GRPC 0.3.2 at https://grpc"),
        ({"supportedInterfaces": [supported("https://x", "GRPC", "1.0")]}, "GRPC 1.0 at https://x"),
        (
            {"supportedInterfaces": [supported("https://x", "JSONRPC", "2.0")]},
            "JSONRPC 2.0 at https://x",
        ),
        (
            {"supportedInterfaces": [supported("https://x", "JSONRPC", "10.1")]},
            "JSONRPC 10.1 at https://x",
        ),
        (MAIN | {"protocolVersion": "0.2.6"}, "jsonrpc 0.2.6 at https://main"),
        ({"supportedInterfaces": 7, "additionalInterfaces": [3], "url": {}}, "no interface"),
    ],
)
def test_a_card_that_offers_nothing_spoken_here_is_an_error_that_names_its_offers(card, named):
    with pytest.raises(DiscoveryError, match=named):
        choose(read_card(CARD_URL, card))


@pytest.mark.parametrize("found_at", range(4))
async def test_the_well_known_places_in_order(
    *, found_at, client, peer_at, message, scripted, scripts
):
    async def script(seen, writer):
        if seen.method == "POST":
            writer.write(scripts.result({"parts": [{"text": "ok"}]})(seen))
        elif seen.path == f"/{PATHS[found_at]}":
            writer.write(scripts.http(200, scripts.card_0_3(f"http://{seen.headers['host']}/")))
        elif found_at % 2:
            writer.write(scripts.http(200, b"<html>", kind="text/html"))
        else:
            writer.write(scripts.http(404))

    agent = await scripted(script)
    await client.send(peer_at(agent.authority), message(), wait=True, within_s=5)
    assert [seen.path for seen in agent.seen] == [
        *(f"/{path}" for path in PATHS[: found_at + 1]),
        "/",
    ]
    assert PATHS == (
        ".well-known/agent-card.json",
        ".well-known/a2a-agent",
        ".well-known/agent.json",
        "agent/card",
    )


async def test_no_card_anywhere_names_every_place(client, peer_at, message, scripted, scripts):
    async def script(seen, writer):
        writer.write(scripts.http(404))

    agent = await scripted(script)
    with pytest.raises(
        DiscoveryError, match=r"agent-card\.json answers HTTP 404; .*agent/card"
    ) as e:
        await client.send(peer_at(agent.authority), message(), wait=True, within_s=5)
    assert e.value.retryable


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0),
        ({"cache-control": "max-age=60"}, 60),
        ({"cache-control": "public, MAX-AGE=60"}, 60),
        ({"cache-control": "max-age=60", "age": "50"}, 10),
        ({"cache-control": "max-age=60, no-store"}, 0),
        ({"cache-control": "no-cache, max-age=60"}, 0),
        (
            {
                "date": "Fri, 15 Jan 2027 08:00:00 GMT",
                "expires": "Fri, 15 Jan 2027 08:02:00 GMT",
            },
            120,
        ),
        ({"expires": "0"}, 0),
    ],
)
def test_what_cache_headers_allow(headers, seconds):
    assert freshness_s(httpx.Headers(headers)) == seconds


@pytest.mark.parametrize(("max_age", "kept_s"), [(100, 100), (3600, 300)])
async def test_a_card_is_kept_to_the_very_edge(
    *, max_age, kept_s, limits, tls, peer_at, message, scripted, scripts
):
    now = 1000.0
    cache = CardCache(limits.cache_s, monotonic=lambda: now)
    client = A2aClient(limits=limits, context=tls.client, cache=cache)
    agent = await scripted(caching(scripts, max_age))
    peer = peer_at(agent.authority)

    async def cards_read():
        await client.send(peer, message(), wait=True, within_s=5)
        return len(agent.seen) - len(agent.calls)

    assert await cards_read() == 1
    now = 1000.0 + kept_s - 0.001
    assert await cards_read() == 1
    now = 1000.0 + kept_s
    assert await cards_read() == 2


def test_a_full_cache_makes_room_for_cards_by_dropping_stale_ones():
    now = 0.0
    cache = CardCache(300, monotonic=lambda: now)
    card = read_card(CARD_URL, ONE)

    def put(host, max_age):
        target = AgentTarget.parse(f"a2a://{host}")
        headers = httpx.Headers({"cache-control": f"max-age={max_age}"})
        cache.put(target, card, headers, allow_cleartext=False, bearer_env=None)
        return cache.get(target, allow_cleartext=False, bearer_env=None)

    for number in range(SIZE):
        assert put(f"h{number}", 10) is card
    assert put("one-too-many", 10) is None
    now = 10.0
    assert put("one-more", 10) is card


def caching(scripts, max_age, answer=None):
    async def script(seen, writer):
        if seen.method == "POST":
            writer.write((answer or scripts.result({"parts": [{"text": "ok"}]}))(seen))
            return
        card = scripts.card_1_0(f"http://{seen.headers['host']}/")
        writer.write(scripts.http(200, card, cache_control=f"max-age={max_age}"))

    return script


async def test_a_protocol_error_drops_the_card_and_a_busy_agent_does_not(
    client, peer_at, message, scripted, scripts
):
    answers = scripts.in_turn(
        scripts.result({"parts": [{"text": "ok"}]}),
        lambda _: scripts.http(429),
        lambda _: scripts.http(200, {"error": {"code": -32601, "message": "no such method"}}),
        scripts.result({"parts": [{"text": "ok"}]}),
    )
    agent = await scripted(caching(scripts, 200, answers))
    peer = peer_at(agent.authority)

    async def cards_read(expected):
        with expected:
            await client.send(peer, message(), wait=True, within_s=5)
        return len(agent.seen) - len(agent.calls)

    assert await cards_read(contextlib.nullcontext()) == 1
    assert await cards_read(pytest.raises(AgentHttpError, match="HTTP 429")) == 1
    assert await cards_read(pytest.raises(AgentRpcError, match="-32601")) == 1
    assert await cards_read(contextlib.nullcontext()) == 2


async def test_a_card_kept_under_allow_cleartext_serves_no_other_binding(
    client, peer_at, message, scripted, scripts
):
    agent = await scripted(caching(scripts, 200))
    await client.send(peer_at(agent.authority), message(), wait=True, within_s=5)
    strict = peer_at(agent.authority, allow_cleartext=False)
    with pytest.raises((AgentUnreachableError, AgentProtocolError)):
        await client.send(strict, message(), wait=True, within_s=5)
    assert len(agent.seen) == 2


@pytest.mark.parametrize(
    ("uri", "authority", "agent"),
    [
        ("a2a://reviewer.prod/triage", "reviewer.prod", "triage"),
        ("a2a://reviewer.prod:8080/a/b", "reviewer.prod:8080", "a/b"),
        ("a2a://reviewer.prod", "reviewer.prod", "reviewer.prod"),
        ("a2a://[::1]:80/", "[::1]:80", "[::1]:80"),
    ],
)
def test_targets(uri, authority, agent):
    target = AgentTarget.parse(uri)
    assert (target.authority, target.agent) == (authority, agent)


@pytest.mark.parametrize(
    "uri",
    [
        "a2a://",
        "a2a:///x",
        "http://x",
        "x",
        "a2a://u@h/x",
        "a2a://h?q",
        "a2a://h:no/x",
        "a2a://h#f",
    ],
)
def test_what_is_no_target(uri):
    with pytest.raises(UsageError, match="a2a://host"):
        AgentTarget.parse(uri)


async def test_the_tenant_of_an_interface_goes_into_each_call(
    client, peer_at, message, scripted, scripts
):
    def card(url):
        found = scripts.card_1_0(url)
        found["supportedInterfaces"][0]["tenant"] = "acme"
        return found

    task = {"id": "t1", "status": {"state": "TASK_STATE_WORKING"}}

    def answer(seen):
        wrapped = {"task": task} if seen.rpc["method"] == "SendMessage" else task
        return scripts.result(wrapped)(seen)

    agent = await scripted(scripts.agent(answer, card))
    peer = peer_at(agent.authority)
    pending = await client.send(peer, message(), wait=True, within_s=5)
    await client.task(peer, pending.task, trace_id="t")
    assert [call.rpc["params"].get("tenant") for call in agent.calls] == ["acme", "acme"]
