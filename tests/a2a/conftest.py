"""Agents for tests: real ones made with a2a-sdk, bad ones made by hand, and a guard around them.

Everything here listens on loopback. The guard refuses, and counts, every connection and every
name look-up that would leave it, before it leaves the process.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
import uvicorn
from a2a.helpers.proto_helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette
from temporalio.client import Client, WorkflowHandle

from harn_temporal.a2a.client import A2aClient, Peer
from harn_temporal.a2a.limits import HopLimits
from harn_temporal.a2a.messages import HopMessage
from harn_temporal.a2a.target import AgentTarget
from harn_temporal.contracts import DispatchOutcome, DispatchRequest, DispatchState
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import EventLog
from harn_temporal.events import TriggerEvent, new_event
from harn_temporal.ingestion import ingest
from harn_temporal.manifest import Manifest, load_manifest
from harn_temporal.registry import register
from harn_temporal.temporal.starter import start_dispatch
from harn_temporal.worker import WorkerOptions, running_worker

PATIENCE_S = 20.0
TLS_HANDSHAKE = b"\x16"


@dataclass
class NetworkGuard:
    """`refused` holds what was tried outside of loopback; `names` are resolved to loopback."""

    refused: list[Any] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)


@pytest.fixture(autouse=True)
def guard(monkeypatch: pytest.MonkeyPatch) -> NetworkGuard:
    found = NetworkGuard()
    connect, connect_ex, resolve = (
        socket.socket.connect,
        socket.socket.connect_ex,
        socket.getaddrinfo,
    )

    def check(sock: socket.socket, address: Any) -> None:
        if sock.family != socket.AF_UNIX and not _is_loopback(address[0]):
            found.refused.append(address)
            raise ConnectionAbortedError(f"the guard refuses {address}")

    def guarded(sock: socket.socket, address: Any) -> None:
        check(sock, address)
        connect(sock, address)

    def guarded_ex(sock: socket.socket, address: Any) -> int:
        check(sock, address)
        return connect_ex(sock, address)

    def resolved(host: Any, *args: Any, **kwargs: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        name = found.names.get(name, name)
        if name not in {None, "", "localhost"} and not _is_address(name):
            found.refused.append(name)
            raise socket.gaierror(f"the guard does not look up {name}")
        return resolve(name, *args, **kwargs)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    monkeypatch.setattr(socket.socket, "connect_ex", guarded_ex)
    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    return found


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


# ---- what is said -------------------------------------------------------------------------------


def hop_message(**changes: Any) -> HopMessage:
    values: dict[str, Any] = {
        "message_id": "trace_1.event_1.reviews",
        "trace_id": "trace_0190a1b2-c3d4-7abc-8def-0123456789ab",
        "event_id": "event_1",
        "trigger_id": "reviews",
        "binding_key": "reviews@v1",
        "target_agent": "triage",
        "event": {"id": "event_1", "headers": {}, "provider_payload": {"raw": {"n": 1}}},
    }
    return HopMessage(**(values | changes))


@pytest.fixture
def message() -> Callable[..., HopMessage]:
    return hop_message


@pytest.fixture
def peer_at() -> Callable[..., Peer]:
    """`peer_at("127.0.0.1:80")`, by default with cleartext allowed."""

    def make(
        authority: str, *, allow_cleartext: bool = True, bearer_env: str | None = None
    ) -> Peer:
        target = AgentTarget.parse(f"a2a://{authority}/triage")
        return Peer(target, allow_cleartext=allow_cleartext, bearer_env=bearer_env)

    return make


@pytest.fixture
def limits() -> HopLimits:
    return HopLimits(connect_s=5, card_s=5, control_s=5)


@pytest.fixture
def client(limits: HopLimits, tls: Tls) -> A2aClient:
    return A2aClient(limits=limits, context=tls.client, environ={})


# ---- TLS ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tls:
    """A CA of this run: what clients trust, and certificates for servers."""

    authority: trustme.CA
    client: ssl.SSLContext

    def server(self, *names: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert(*names).configure_cert(context)
        return context


@pytest.fixture(scope="session")
def tls() -> Tls:
    authority = trustme.CA()
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return Tls(authority, context)


# ---- bad peers, made by hand --------------------------------------------------------------------


@dataclass(frozen=True)
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def rpc(self) -> Any:
        return json.loads(self.body)


Script = Callable[[Seen, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class ScriptedPeer:
    """Answers as its script says. `connections` counts what reached the port at all."""

    script: Script
    port: int = 0
    scheme: str = "http"
    connections: int = 0
    seen: list[Seen] = field(default_factory=list)
    serving: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def authority(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}/"

    @property
    def calls(self) -> list[Seen]:
        return [request for request in self.seen if request.method == "POST"]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.serving.add(asyncio.current_task())
        try:
            while (request := await _read_request(reader)) is not None:
                self.seen.append(request)
                await self.script(request, writer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, ValueError):
            pass  # the client went away
        finally:
            writer.transport.abort()

    async def stop(self) -> None:
        for _ in range(3):  # let connections that were just taken begin, so that they can end
            await asyncio.sleep(0)
        for task in self.serving:
            task.cancel()
        await asyncio.gather(*self.serving, return_exceptions=True)


async def _read_request(reader: asyncio.StreamReader) -> Seen | None:
    first_byte = await reader.readexactly(1)
    if first_byte == TLS_HANDSHAKE:  # at a plain port: real servers hang up as well
        return None
    head = first_byte + await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Seen(method, path, headers, body)


@pytest.fixture
async def scripted() -> AsyncIterator[Callable[..., Awaitable[ScriptedPeer]]]:
    """`await scripted(script, context=…)`: a peer that listens until the test is over."""
    async with AsyncExitStack() as stack:

        async def start(script: Script, context: ssl.SSLContext | None = None) -> ScriptedPeer:
            peer = ScriptedPeer(script, scheme="https" if context else "http")
            server = await asyncio.start_server(peer.serve, "127.0.0.1", 0, ssl=context)
            peer.port = server.sockets[0].getsockname()[1]
            stack.push_async_callback(peer.stop)
            stack.callback(server.close)
            return peer

        yield start


def http(status: int, body: Any = b"", *, kind: str = "application/json", **headers: str) -> bytes:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", f"content-type: {kind}", f"content-length: {len(raw)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + raw


def card_1_0(url: str) -> dict[str, Any]:
    interface = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    return {"name": "Reviewer", "version": "1", "supportedInterfaces": [interface]}


def card_0_3(url: str) -> dict[str, Any]:
    return {"name": "R", "url": url, "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"}


@dataclass(frozen=True)
class Scripts:
    """Ready-made scripts, and the pieces to make others of."""

    http = staticmethod(http)
    card_1_0 = staticmethod(card_1_0)
    card_0_3 = staticmethod(card_0_3)

    @staticmethod
    def agent(answer: Callable[[Seen], bytes], card: Callable[[str], Any] = card_1_0) -> Script:
        """Serves a card that points to itself, and answers each call with what `answer` makes."""

        async def script(seen: Seen, writer: asyncio.StreamWriter) -> None:
            if seen.method == "GET":
                secure = writer.get_extra_info("sslcontext") is not None
                url = f"{'https' if secure else 'http'}://{seen.headers['host']}/rpc"
                good = seen.path == "/.well-known/agent-card.json"
                writer.write(http(200, card(url)) if good else http(404))
            else:
                writer.write(answer(seen))

        return script

    @staticmethod
    def in_turn(*answers: Callable[[Seen], bytes]) -> Callable[[Seen], bytes]:
        """The first answer for the first call, and so on."""
        left = list(answers)
        return lambda seen: left.pop(0)(seen)  # noqa: PLW0108 - popped at each call, not once

    @staticmethod
    def result(value: Any) -> Callable[[Seen], bytes]:
        return lambda seen: http(200, {"jsonrpc": "2.0", "id": seen.rpc["id"], "result": value})


@pytest.fixture
def scripts() -> Scripts:
    return Scripts()


# ---- real agents, made with a2a-sdk -------------------------------------------------------------

Work = Callable[[RequestContext, TaskUpdater], Awaitable[None]]


class ScriptedExecutor(AgentExecutor):
    """An agent whose work a test gives; it notes what it was told."""

    def __init__(self, work: Work | None) -> None:
        self.work = work
        self.messages: list[Any] = []
        self.cancelled: list[str] = []
        self.tasks: list[str] = []

    async def execute(self, context: RequestContext, event_queue: Any) -> None:
        self.messages.append(context.message)
        if self.work is None:
            await event_queue.enqueue_event(
                new_text_message('{"verdict": "fine"}', context_id=context.context_id)
            )
            return
        task = context.current_task or new_task_from_user_message(context.message)
        self.tasks.append(task.id)
        await event_queue.enqueue_event(task)
        await self.work(context, TaskUpdater(event_queue, task.id, task.context_id))

    async def cancel(self, context: RequestContext, event_queue: Any) -> None:
        self.cancelled.append(context.task_id)
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


@dataclass
class SdkAgent:
    """A running agent. `headers` holds those of each call, `bodies` what was said."""

    executor: ScriptedExecutor
    authority: str
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)

    def methods(self) -> list[str]:
        return [body["method"] for body in self.bodies]


class Recorder:
    """ASGI middleware that notes each call."""

    def __init__(self, app: Any, agent: SdkAgent) -> None:
        self._app, self._agent = app, agent

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body = b""
        while True:
            part = await receive()
            body += part.get("body", b"")
            if not part.get("more_body"):
                break
        self._agent.headers.append({k.decode(): v.decode() for k, v in scope["headers"]})
        self._agent.bodies.append(json.loads(body))
        given = False

        async def replay() -> Any:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, replay, send)


def sdk_card(url: str, version: str) -> AgentCard:
    return AgentCard(
        name="Reviewer",
        description="Reviews what it is given",
        version="1.2.3",
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version=version)
        ],
        capabilities=AgentCapabilities(push_notifications=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="triage", name="Triage", description="Triages", tags=["review"])],
    )


@pytest.fixture
def sdk_agent(tmp_path: Path, tls: Tls) -> Iterator[Callable[..., SdkAgent]]:
    """`sdk_agent("1.0", work)` starts an agent; without `work` it answers at once."""
    running: list[tuple[uvicorn.Server, threading.Thread]] = []

    def start(version: str, work: Work | None = None, *, tls_name: str | None = None) -> SdkAgent:
        listener = socket.create_server(("127.0.0.1", 0))
        authority = f"{tls_name or '127.0.0.1'}:{listener.getsockname()[1]}"
        scheme = "https" if tls_name else "http"
        agent = SdkAgent(ScriptedExecutor(work), authority)
        card = sdk_card(f"{scheme}://{authority}/rpc", version)
        handler = DefaultRequestHandler(agent.executor, InMemoryTaskStore(), card)
        routes = create_agent_card_routes(card) + create_jsonrpc_routes(
            handler, "/rpc", enable_v0_3_compat=True
        )
        files: dict[str, Any] = {}
        if tls_name:
            issued = tls.authority.issue_cert(tls_name)
            pem = tmp_path / f"{tls_name}.pem"
            issued.private_key_and_cert_chain_pem.write_to_path(str(pem))
            files = {"ssl_certfile": str(pem)}
        config = uvicorn.Config(
            Recorder(Starlette(routes=routes), agent), log_level="error", lifespan="off", **files
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        deadline = time.monotonic() + PATIENCE_S
        while not server.started:
            if not thread.is_alive() or time.monotonic() > deadline:
                pytest.fail("the agent did not start")
            time.sleep(0.01)
        running.append((server, thread))
        return agent

    yield start
    for server, thread in running:
        server.should_exit = server.force_exit = True
        thread.join(PATIENCE_S)


# ---- dispatches to agents -----------------------------------------------------------------------


@dataclass
class AgentPackage:
    """A manifest with one trigger, whose handler is an agent, and a store in memory."""

    manifest: Manifest
    log: EventLog
    client: Client
    agents: A2aClient

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[None]:
        options = WorkerOptions(pump=False, grace=timedelta(seconds=1))
        async with running_worker(
            self.client, self.log, self.manifest, options, agents=self.agents
        ):
            yield

    async def start(self, **changes: Any) -> WorkflowHandle[Any, DispatchOutcome]:
        """Start a dispatch of a new event; `changes` go into the event, or the request."""
        replays = {key: changes.pop(key) for key in ("replay", "traceparent") if key in changes}
        given: dict[str, Any] = {"provider": "github", "kind": "push", "payload": {"n": 1}}
        extra = {key: changes.pop(key) for key in ("actor_chain",) if key in changes}
        event = TriggerEvent.from_json({**new_event(**given | changes).to_json(), **extra})
        bindings = await register(self.log, self.manifest.package, self.manifest.bindings)
        taken = await ingest(self.log, bindings, event, package=self.manifest.package)
        assert taken[0].address is not None
        request = DispatchRequest(
            store_id=self.log.store_id,
            binding=bindings[0],
            event_id=event.id,
            trace_id=event.trace_id,
            address=taken[0].address,
            event=event,
            **replays,
        )
        started = await start_dispatch(self.client, self.log, request)
        return started.handle

    async def dispatch(self, **changes: Any) -> DispatchOutcome:
        async with self.worker():
            handle = await self.start(**changes)
            return await handle.result()

    async def phase(self, handle: WorkflowHandle[Any, DispatchOutcome], phase: str) -> None:
        """Wait until the dispatch is in that phase."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                state = await handle.query("state", result_type=DispatchState)
                if state.phase == phase:
                    return
                await asyncio.sleep(0.02)

    async def hops(self) -> list[dict[str, Any]]:
        """The nodes of hops in the action graph, as they were appended."""
        return [
            node
            for record in await self.log.read("observability.action_graph")
            for node in record.payload["observability"]["action_graph_nodes"]
            if node["kind"] == "a2a_hop"
        ]

    async def kinds(self, topic: str) -> list[str]:
        records = await self.log.read(topic)
        return [record.kind for record in records if record.kind != "state_transition"]


@pytest.fixture
async def agent_package(
    temporal_client: Client, tmp_path: Path, client: A2aClient
) -> AsyncIterator[Callable[..., AgentPackage]]:
    """`agent_package(authority, *lines)`: a package whose handler is the agent there."""
    settings = StoreSettings.from_environment(tmp_path, {"HARN_EVENT_LOG_BACKEND": "memory"})
    log = await open_event_log(settings)

    def make(authority: str, *lines: str, agents: A2aClient | None = None) -> AgentPackage:
        path = tmp_path / "harn.toml"
        trigger = [
            "[[triggers]]",
            'id = "reviews"',
            'kind = "webhook"',
            'provider = "github"',
            "match = {}",
            f'handler = "a2a://{authority}/triage"',
            "allow_cleartext = true",
            *lines,
        ]
        path.write_text('[package]\nname = "reviewing"\n\n' + "\n".join(trigger) + "\n")
        return AgentPackage(load_manifest(path), log, temporal_client, agents or client)

    yield make
    await log.close()
