"""Peers that aim at what reads them: nothing they say ends as anything but a hop that failed."""

from __future__ import annotations

import json
import logging
import threading

import httpcore
import httpx
import pytest

from harn_temporal.a2a.answers import read_answer
from harn_temporal.a2a.client import A2aClient
from harn_temporal.a2a.discovery import Trail
from harn_temporal.a2a.failures import (
    A2aError,
    AgentHttpError,
    AgentProtocolError,
    AgentRefusedError,
    AgentRpcError,
    AgentUnreachableError,
    DiscoveryError,
)
from harn_temporal.canonical import decode
from harn_temporal.errors import UsageError

TOKEN = "tok-9F8E7D6C5B4A"
OK = {"parts": [{"text": "ok"}]}
WORKING = {"id": "t1", "status": {"state": "TASK_STATE_WORKING"}}


@pytest.fixture
def secret_client(limits, tls):
    environ = {"T": TOKEN, "OTHER": "another-token-1", "HARN_A2A_PUSH_TOKEN": TOKEN + "-longer"}
    return A2aClient(limits=limits, context=tls.client, environ=environ)


@pytest.mark.parametrize(
    "value",
    [
        "Fri, 15 Jan 99999999999 08:00:30 GMT",
        "Fri, 15 Jan 2027 99999999999:00:30 GMT",
        "Fri, 15 Jan 2027 08:00:30 -9999999999999999999999",
        "",
    ],
)
async def test_a_retry_after_that_is_no_date_says_nothing(
    *, value, client, peer_at, message, scripted, scripts
):
    agent = await scripted(scripts.agent(lambda _: scripts.http(429, retry_after=value)))
    with pytest.raises(AgentHttpError) as error:
        await client.send(peer_at(agent.authority), message(), wait=True, within_s=5)
    assert error.value.retry_after_ms is None


@pytest.mark.parametrize(
    "headers",
    [
        {"cache_control": "max-age=60", "age": "9" * 5000},
        {
            "expires": "Fri, 15 Jan 99999999999 08:00:30 GMT",
            "date": "Fri, 15 Jan 2027 08:00:30 GMT",
        },
    ],
)
async def test_cache_headers_that_make_no_sense_keep_nothing(
    *, headers, client, peer_at, message, scripted, scripts
):
    async def script(seen, writer):
        if seen.method == "GET":
            card = scripts.card_1_0(f"http://{seen.headers['host']}/rpc")
            writer.write(scripts.http(200, card, **headers))
        else:
            writer.write(scripts.result(OK)(seen))

    agent = await scripted(script)
    for _ in range(2):
        answer = await client.send(peer_at(agent.authority), message(), wait=True, within_s=5)
        assert answer.result == "ok"
    assert [seen.method for seen in agent.seen] == ["GET", "POST"] * 2


@pytest.mark.parametrize(
    "url",
    [
        "https://xn--a/",
        "http://[v1.x]/",
        "http://\u2100.com/",
        "http://127.0.0.1:0/",
        "http://@127.0.0.1:1/",
        "",
        "/rpc",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://[::ffff:127.0.0.1]/",
    ],
)
async def test_an_odd_url_in_a_card_is_refused(
    *, url, client, peer_at, message, scripted, scripts, guard
):
    agent = await scripted(scripts.agent(lambda _: b"", lambda _: scripts.card_1_0(url)))
    with pytest.raises((AgentRefusedError, DiscoveryError)):
        await client.send(peer_at(agent.authority), message(), wait=True, within_s=5)
    assert (agent.calls, guard.refused) == ([], [])


def test_port_0_is_no_other_port(peer_at):
    target = peer_at("reviewer.prod").target
    assert not target.owns(httpx.URL("https://reviewer.prod:0/"))
    assert target.owns(httpx.URL("https://REVIEWER.prod:443/"))


@pytest.mark.parametrize("authority", ["xn--", "xn--a.prod"])
def test_a_target_of_broken_punycode_is_none(authority, peer_at):
    with pytest.raises(UsageError):
        peer_at(authority)


@pytest.mark.parametrize("wrong", [0, "", False, "another", 1.5, {}])
async def test_an_answer_to_another_request_is_refused(
    *, wrong, client, peer_at, message, scripted, scripts
):
    said = {"jsonrpc": "2.0", "id": wrong, "result": OK}
    agent = await scripted(scripts.agent(lambda _: scripts.http(200, said)))
    with pytest.raises(AgentProtocolError, match="was not sent"):
        await client.send(peer_at(agent.authority), message(), wait=True, within_s=5)


async def test_an_answer_about_another_task_is_none(client, peer_at, message, scripted, scripts):
    other = {"id": "t2", "status": {"state": "TASK_STATE_COMPLETED"}}
    answers = scripts.in_turn(
        scripts.result({"task": WORKING}), scripts.result(other), scripts.result(OK)
    )
    agent = await scripted(scripts.agent(answers))
    peer = peer_at(agent.authority)
    answer = await client.send(peer, message(), wait=False, within_s=5)
    for _ in range(2):
        with pytest.raises(AgentProtocolError, match="another") as error:
            await client.task(peer, answer.task, trace_id="t")
        assert error.value.says_nothing_of_the_task


@pytest.mark.parametrize(
    "change",
    [
        {"supportedInterfaces": [{"tenant": "x" * 2_000_000}]},
        {"supportedInterfaces": [{"url": "/" + "x" * 2_000_000}]},
    ],
)
async def test_what_goes_into_a_handle_has_a_limit(
    *, change, limits, tls, peer_at, message, scripted, scripts
):
    client = A2aClient(
        limits=type(limits)(card_bytes=4_000_000, card_s=5), context=tls.client, environ={}
    )

    def card(url):
        made = scripts.card_1_0(url)
        entry = change["supportedInterfaces"][0]
        own = {"url": url + entry["url"]} if "url" in entry else entry
        made["supportedInterfaces"][0] |= own
        return made

    agent = await scripted(scripts.agent(lambda _: b"", card))
    with pytest.raises(DiscoveryError, match="characters"):
        await client.send(peer_at(agent.authority), message(), wait=True, within_s=5)
    assert agent.calls == []


async def test_a_task_id_of_megabytes_is_no_id(client, peer_at, message, scripted, scripts):
    task = WORKING | {"id": "t" * 3_000_000}
    agent = await scripted(scripts.agent(scripts.result({"task": task})))
    with pytest.raises(AgentProtocolError, match="an id of 3000000 characters"):
        await client.send(peer_at(agent.authority), message(), wait=True, within_s=5)


async def test_a_name_of_megabytes_is_cut(client, peer_at, message, scripted, scripts):
    agent = await scripted(
        scripts.agent(
            scripts.result({"task": WORKING}),
            lambda url: scripts.card_1_0(url) | {"name": "n" * 900_000},
        )
    )
    answer = await client.send(peer_at(agent.authority), message(), wait=True, within_s=5)
    assert len(answer.task.agent_id) == 1000


async def test_a_card_that_is_of_no_use_is_not_kept(client, peer_at, message, scripted, scripts):
    """Else a card that was mended would be refused for as long as its headers said."""
    urls = ["http://127.0.0.1:1/", None]

    async def script(seen, writer):
        if seen.method == "GET":
            card = scripts.card_1_0(urls.pop(0) or f"http://{seen.headers['host']}/rpc")
            writer.write(scripts.http(200, card, cache_control="max-age=300"))
        else:
            writer.write(scripts.result(OK)(seen))

    agent = await scripted(script)
    peer = peer_at(agent.authority)
    with pytest.raises(AgentRefusedError):
        await client.send(peer, message(), wait=True, within_s=5)
    assert (await client.send(peer, message(), wait=True, within_s=5)).result == "ok"


async def test_a_card_shown_to_one_token_is_no_card_for_others(
    *, secret_client, peer_at, message, scripted, scripts
):
    async def script(seen, writer):
        if seen.method == "POST":
            writer.write(scripts.result(OK)(seen))
        elif "authorization" not in seen.headers:
            writer.write(scripts.http(401))
        else:
            card = scripts.card_1_0(f"http://{seen.headers['host']}/rpc")
            writer.write(scripts.http(200, card, cache_control="max-age=300"))

    agent = await scripted(script)
    mine = peer_at(agent.authority, bearer_env="T")
    assert (await secret_client.send(mine, message(), wait=True, within_s=5)).result == "ok"
    with pytest.raises(AgentRefusedError, match="HTTP 401"):
        await secret_client.send(peer_at(agent.authority), message(), wait=True, within_s=5)
    other = peer_at(agent.authority, bearer_env="OTHER")
    assert (await secret_client.send(other, message(), wait=True, within_s=5)).result == "ok"
    shown = [s.headers["authorization"] for s in agent.seen if "authorization" in s.headers]
    assert shown == [f"Bearer {TOKEN}"] * 2 + ["Bearer another-token-1"] * 2


ESCAPED = "".join(f"\\u{ord(character):04x}" for character in TOKEN)


@pytest.mark.parametrize(
    "text",
    [f'{{"a": "{ESCAPED}"}}', f'{{"{ESCAPED}": 1}}', TOKEN.lower(), f"{TOKEN}-longer", TOKEN * 3],
)
async def test_a_token_in_disguise_is_found_in_results(
    *, text, secret_client, peer_at, message, scripted, scripts
):
    agent = await scripted(scripts.agent(scripts.result({"parts": [{"text": text}]})))
    answer = await secret_client.send(
        peer_at(agent.authority, bearer_env="T"), message(), wait=True, within_s=5
    )
    assert "[redacted]" in str(answer)
    assert TOKEN.lower() not in str(answer).lower()
    assert "longer" not in str(answer)


@pytest.mark.parametrize(
    "answer",
    [
        lambda http: http(200, {"error": {"code": 1, "message": "x" * 1990 + TOKEN}}),
        lambda http: http(500, {"error": {"code": 1, "message": "x" * 1990 + TOKEN}}),
        lambda http: http(200, b"{}", kind="text/" + "x" * 35 + TOKEN),
        lambda http: http(307, location=f"https://{TOKEN}.test/"),
        lambda http: http(307, location="https://x.test/" + TOKEN),
        lambda http: http(200, {TOKEN: float("1e300"), "id": TOKEN}),
        lambda http: http(200, json.dumps({"x" * 60 + TOKEN: "?"}).replace('"?"', "NaN").encode()),
    ],
)
async def test_no_piece_of_a_token_is_in_an_error(
    *, answer, secret_client, peer_at, message, scripted, scripts
):
    agent = await scripted(scripts.agent(lambda _: answer(scripts.http)))
    with pytest.raises(A2aError) as error:
        await secret_client.send(
            peer_at(agent.authority, bearer_env="T"), message(), wait=True, within_s=5
        )
    assert TOKEN[:6].lower() not in str(error.value).lower()


async def test_the_token_of_one_binding_is_not_told_to_another(
    *, secret_client, peer_at, message, scripted, scripts
):
    """An agent that two bindings speak to knows both tokens."""
    agent = await scripted(scripts.agent(scripts.result({"parts": [{"text": TOKEN}]})))
    for bearer_env in ("T", "OTHER", None):
        peer = peer_at(agent.authority, bearer_env=bearer_env)
        answer = await secret_client.send(peer, message(), wait=True, within_s=5)
        assert answer.result == "[redacted]"


async def test_what_breaks_the_reading_is_a_hop_that_failed(
    *, client, peer_at, message, scripted, scripts, monkeypatch, caplog
):
    """A followed task is asked about until that is an A2aError: nothing else may come out."""
    caplog.set_level(logging.DEBUG)

    def broken(_):
        raise KeyError(TOKEN)

    monkeypatch.setattr("harn_temporal.a2a.replies.read_answer", broken)
    agent = await scripted(scripts.agent(scripts.result(OK)))
    with pytest.raises(AgentProtocolError, match=r"KeyError at test_hostile_peers\.py") as error:
        await client.send(peer_at(agent.authority), message(), wait=True, within_s=5)
    assert TOKEN not in str(error.value) + caplog.text
    assert error.value.says_nothing_of_the_task


@pytest.mark.parametrize(
    "address",
    ["64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "168.63.129.16", "192.0.0.192", "fd20:ce::254"],
)
async def test_other_spellings_of_metadata_services(address, client, peer_at, guard):
    guard.names["reviewer.test"] = address
    with pytest.raises(AgentRefusedError, match="where no agent can be"):
        await client.look_up(peer_at("reviewer.test"), Trail())
    assert guard.refused == []


async def test_an_error_message_that_is_no_text(client, peer_at, message, scripted, scripts):
    for said in ([], 7, "boom", {"code": True, "message": {"a": 1}}):
        agent = await scripted(scripts.agent(lambda _, e=said: scripts.http(200, {"error": e})))
        with pytest.raises(AgentRpcError):
            await client.send(peer_at(agent.authority), message(), wait=True, within_s=5)


async def test_a_large_answer_does_not_hold_up_the_worker(
    *, client, peer_at, message, scripted, scripts, monkeypatch
):
    """Eight MiB of empty lists take seconds to look through."""
    threads = []

    def reading(answer):
        threads.append(threading.current_thread() is threading.main_thread())
        return read_answer(answer)

    monkeypatch.setattr("harn_temporal.a2a.replies.read_answer", reading)
    for size in (100_000, 150_000):
        big = {"parts": [{"text": "x" * size}]}
        agent = await scripted(scripts.agent(scripts.result(big)))
        answer = await client.send(peer_at(agent.authority), message(), wait=True, within_s=5)
        assert len(answer.result) == size
    assert threads == [True, False]


@pytest.mark.parametrize("place", ["card", "error", "cancel"])
async def test_no_large_reply_is_decoded_in_the_event_loop(
    *, place, client, peer_at, message, scripted, scripts, monkeypatch
):
    sizes = []

    def decoding(raw):
        if threading.current_thread() is threading.main_thread():
            sizes.append(len(raw))
        return decode(raw)

    padding = {"padding": "x" * 200_000}
    large = {"error": {"code": 1, "message": "no"}} | padding
    answers = {
        "card": [scripts.result({"task": WORKING}), scripts.result(WORKING)],
        "error": [lambda _: scripts.http(500, large)],
        "cancel": [scripts.result({"task": WORKING}), scripts.result(WORKING | padding)],
    }[place]
    monkeypatch.setattr("harn_temporal.a2a.discovery.decode", decoding)
    agent = await scripted(
        scripts.agent(
            scripts.in_turn(*answers),
            lambda url: scripts.card_1_0(url) | (padding if place == "card" else {}),
        )
    )
    peer = peer_at(agent.authority)
    if place == "error":
        with pytest.raises(AgentHttpError, match="JSON-RPC error 1: no"):
            await client.send(peer, message(), wait=True, within_s=5)
    else:
        answer = await client.send(peer, message(), wait=True, within_s=5)
        await client.cancel(peer, answer.task, trace_id="t")
    assert sizes
    assert max(sizes) < 10_000


async def test_an_address_that_does_not_answer_hides_no_other(client, peer_at, monkeypatch):
    """A name with an address of each kind is reached though one of them leads nowhere."""
    tried = []

    async def addresses(host, port):
        return ["2001:db8::1", "192.0.2.7"]

    async def connect_tcp(self, address, port, **_):
        tried.append(address)
        raise httpcore.ConnectTimeout if ":" in address else httpcore.ConnectError

    monkeypatch.setattr("harn_temporal.a2a.connecting._addresses", addresses)
    monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", connect_tcp)
    with pytest.raises(AgentUnreachableError):
        await client.look_up(peer_at("reviewer.test", allow_cleartext=False), Trail())
    assert tried == ["2001:db8::1", "192.0.2.7"]


async def test_an_answer_in_very_many_pieces_is_not_read(
    client, peer_at, message, scripted, scripts
):
    async def script(seen, writer):
        if seen.method == "GET":
            await scripts.agent(lambda _: b"")(seen, writer)
            return
        head = b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\n"
        writer.write(head + b"transfer-encoding: chunked\r\n\r\n")
        for _ in range(80):
            writer.write(b"1\r\n \r\n" * 1000)
            await writer.drain()

    agent = await scripted(script)
    with pytest.raises(AgentProtocolError, match="more than 65536 pieces"):
        await client.send(peer_at(agent.authority), message(), wait=True, within_s=60)


async def test_headers_without_end_are_not_read(client, peer_at, message, scripted, scripts):
    sent = 0

    async def script(seen, writer):
        nonlocal sent
        if seen.method == "GET":
            await scripts.agent(lambda _: b"")(seen, writer)
            return
        writer.write(b"HTTP/1.1 200 X\r\n")
        for _ in range(1000):
            writer.write(b"x-more: " + b"a" * 65_000 + b"\r\n")
            await writer.drain()
            sent += 65_000

    agent = await scripted(script)
    with pytest.raises(AgentProtocolError, match="does not speak HTTP"):
        await client.send(peer_at(agent.authority), message(), wait=True, within_s=60)
    assert sent < 20_000_000


async def test_a_name_that_is_bound_anew_after_the_card_leads_nowhere_forbidden(
    *, client, peer_at, message, scripted, scripts, tls, guard
):
    guard.names["reviewer.test"] = "127.0.0.1"

    def card(url):
        guard.names["reviewer.test"] = "169.254.169.254"
        return scripts.card_1_0(url)

    agent = await scripted(scripts.agent(lambda _: b"", card), tls.server("reviewer.test"))

    async def hanging_up(seen, writer):
        body = json.dumps(card(f"https://{seen.headers['host']}/rpc")).encode()
        head = f"HTTP/1.1 200 X\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)

    agent.script = hanging_up  # else the connection that is open already would be used
    with pytest.raises(AgentRefusedError, match=r"resolves to 169\.254\.169\.254"):
        await client.send(peer_at(f"reviewer.test:{agent.port}"), message(), wait=True, within_s=5)
    assert (agent.calls, guard.refused) == ([], [])
