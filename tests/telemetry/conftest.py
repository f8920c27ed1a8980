"""A package in a folder of its own with its store, the program, and a collector of traces."""

from __future__ import annotations

import asyncio
import gzip
import http.server
import os
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from harn_temporal.eventlog import StoreSettings, open_event_log, topics
from harn_temporal.events import new_event
from harn_temporal.ingestion import ingest
from harn_temporal.manifest import load_manifest
from harn_temporal.registry import register
from harn_temporal.telemetry import tracing
from harn_temporal.telemetry.otel import EventTraceIds, OtelTracer

BOUND_S = 30.0


@dataclass
class Package:
    folder: Path
    manifest: Any
    log: Any

    async def ingest(self, kind: str, **given: Any) -> Any:
        """Take in one event of the provider `shop`, for every trigger that matches its kind."""
        event = new_event(provider="shop", kind=kind, **{"payload": {"n": 1}} | given)
        bindings = await register(self.log, self.manifest.package, self.manifest.bindings)
        return event, await ingest(self.log, bindings, event, package=self.manifest.package)


@pytest.fixture
async def log(tmp_path):
    settings = StoreSettings.from_environment(tmp_path / "state", {})
    opened = await open_event_log(settings)
    yield opened
    await opened.close()


@pytest.fixture
def make_package(log, tmp_path):
    def make(lib: str, *triggers: str) -> Package:
        folder = tmp_path / "project"
        folder.mkdir()
        (folder / "lib.py").write_text(lib)
        head = '[package]\nname = "demo"\n\n[exports]\nhandlers = "lib.py"\n'
        path = folder / "harn.toml"
        path.write_text(head + "".join(f"\n[[triggers]]\n{each}\n" for each in triggers))
        return Package(folder, load_manifest(path), log)

    return make


@pytest.fixture
def trigger():
    def make(trigger_id: str, handler: str, *lines: str) -> str:
        return "\n".join(
            [
                f'id = "{trigger_id}"',
                'kind = "webhook"',
                'provider = "shop"',
                f'match = {{ events = ["{trigger_id}"] }}',
                f'handler = "{handler}"',
                *lines,
            ]
        )

    return make


@pytest.fixture
def until():
    """What `fact` gives once it is true. It is a fact that is awaited, never a duration."""

    async def wait(fact, bound_s: float = BOUND_S):
        async with asyncio.timeout(bound_s):
            while not (found := await fact()):  # noqa: ASYNC110 - others make it true
                await asyncio.sleep(0.02)
            return found

    return wait


@pytest.fixture
def ended(until, outcomes):
    """Waits until so many dispatches have ended."""

    async def wait(count: int):
        async def fact():
            return await outcomes() == count

        await until(fact)

    return wait


@pytest.fixture
def outcomes(log):
    """How many dispatches have ended, of all tenants."""

    async def count():
        heads = [head.topic for head in await log.topics()]
        outboxes = [topic for topic in heads if topics.is_of(topic, topics.TRIGGER_OUTBOX)]
        records = [record for topic in outboxes for record in await log.read(topic)]
        return sum("harn_temporal.outcome" in record.headers for record in records)

    return count


@pytest.fixture
def spans():
    """The tracer of this process, with all that it has finished in memory."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(id_generator=EventTraceIds(), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing.install(OtelTracer(provider))
    yield exporter
    tracing.install(None)


@dataclass
class OtlpCollector:
    """A collector on loopback. `spans` are those that arrived, `headers` of the last request."""

    url: str
    spans: list[Any] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)
    services: set[str] = field(default_factory=set)


@pytest.fixture
def collector():
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                found.services.update(
                    each.value.string_value
                    for each in resource.resource.attributes
                    if each.key == "service.name"
                )
                for scope in resource.scope_spans:
                    found.spans += scope.spans
            found.headers = {name.lower(): value for name, value in self.headers.items()}
            found.paths.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = OtlpCollector(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield found
    server.shutdown()
    server.server_close()
    thread.join()


@dataclass
class Program:
    """`harn-temporal` for the package and its store; no server is embedded."""

    folder: Path
    state_dir: Path
    environment: dict[str, str]

    def __call__(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                str(Path(sys.executable).with_name("harn-temporal")),
                "--state-dir",
                str(self.state_dir),
                *arguments,
            ],
            cwd=self.folder,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


@pytest.fixture
def program(tmp_path):
    plain = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HARN_", "TEMPORAL_", "OTEL_"))
    }
    plain["TEMPORAL_CONFIG_FILE"] = str(tmp_path / "none.toml")
    return Program(tmp_path / "project", tmp_path / "state", plain)
