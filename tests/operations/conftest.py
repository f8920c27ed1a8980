"""A package with its store, dispatches that a real worker runs, and the program beside them."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import EventLog, Record
from harn_temporal.events import TriggerEvent, new_event
from harn_temporal.headers import OUTCOME, WORKFLOW_ID
from harn_temporal.ingestion import Ingested, ingest
from harn_temporal.manifest import Manifest, load_manifest
from harn_temporal.registry import register

T = TypeVar("T")

BOUND_S = 30.0

LIB = """
import asyncio
import pathlib
import time

FOLDER = pathlib.Path(__file__).parent

def mark(name, text=""):
    (FOLDER / name).write_text(text)

def succeeds(event, context):
    mark(f"ran-{time.monotonic_ns()}", event.id)
    return {"trace": event.trace_id, "headers": event.headers, "attempt": context.attempt}

def fails(event):
    raise ValueError("broken")

def fails_until_mended(event):
    if not (FOLDER / "mended").exists():
        raise ValueError("broken")
    return "mended"

def echoes(event):
    return event.raw["text"]

async def runs_async(event):
    mark("begun")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        mark("told")
        raise

def runs_def(event, context):
    mark("begun")
    while not context.cancelled:
        time.sleep(0.005)
    mark("told")

async def decides_slowly(event):
    mark("asked")
    await asyncio.Event().wait()
"""


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)


@dataclass
class Package:
    folder: Path
    manifest: Manifest
    log: EventLog
    state_dir: Path

    async def ingest(self, payload: Any = None, **event: Any) -> tuple[TriggerEvent, Ingested]:
        """One event for the first trigger."""
        given: dict[str, Any] = {"provider": "github", "kind": "push", "payload": payload or {}}
        made = new_event(**given | event)
        bindings = await register(self.log, self.manifest.package, self.manifest.bindings)
        first = bindings[0].trigger_id
        taken = await ingest(self.log, bindings, made, package=self.manifest.package, only=first)
        return made, taken[0]

    def change(self, *triggers: str) -> None:
        """The manifest as the next worker reads it."""
        self.manifest = _manifest(self.folder, triggers)

    async def ended(self, count: int = 1) -> dict[str, Record]:
        """The outbox record that ended each dispatch by workflow id, once there are so many."""

        async def look() -> dict[str, Record] | None:
            found = {
                record.headers[WORKFLOW_ID]: record
                for head in await self.log.topics()
                if head.topic.endswith("trigger.outbox")
                for record in await self.log.read(head.topic)
                if OUTCOME in record.headers
            }
            return found if len(found) >= count else None

        return await self.until(look)

    async def statuses(self, count: int = 1) -> list[str]:
        return [record.headers[OUTCOME] for record in (await self.ended(count)).values()]

    async def exists(self, name: str) -> None:
        async def look() -> bool:
            return (self.folder / name).exists()

        await self.until(look)

    async def waits_for_retry(self) -> None:
        async def look() -> bool:
            records = await self.log.read("trigger.attempts")
            return any(record.kind == "retry_scheduled" for record in records)

        await self.until(look)

    @staticmethod
    async def until(fact: Callable[[], Awaitable[T]], bound_s: float = BOUND_S) -> T:
        async with asyncio.timeout(bound_s):
            while not (found := await fact()):  # noqa: ASYNC110 - others make it true
                await asyncio.sleep(0.02)
            return found

    async def run(self, *arguments: str) -> Ran:
        """`harn-temporal` in a process of its own."""
        program = Path(sys.executable).parent / "harn-temporal"
        done = await asyncio.to_thread(
            subprocess.run,
            [str(program), *arguments, "--state-dir", str(self.state_dir)],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    async def append_by_sql(self, topic: str, kind: str, payload: Any) -> None:
        """A record without headers, as another program writes it in plain SQL."""
        await asyncio.to_thread(self._append_by_sql, topic, kind, payload)

    def _append_by_sql(self, topic: str, kind: str, payload: Any) -> None:
        connection = sqlite3.connect(self.state_dir / "events.sqlite", timeout=30)
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            head = "SELECT coalesce(max(event_id), 0) + 1 FROM events WHERE topic = ?"
            (event_id,) = connection.execute(head, (topic,)).fetchone()
            connection.execute(
                "INSERT INTO events VALUES (?, ?, ?, ?, '{}', 1)",
                (topic, event_id, kind, json.dumps(payload).encode()),
            )
        connection.close()


class Triggers:
    """Manifest entries; conftest files cannot be imported."""

    FAST = 'retry = { max = 2, backoff = "linear", delay_ms = 20 }'

    @staticmethod
    def one(handler: str, *lines: str, trigger_id: str = "on-push") -> str:
        return "\n".join(
            [
                f'id = "{trigger_id}"',
                'kind = "webhook"',
                'provider = "github"',
                'match = { events = ["push"] }',
                f'handler = "handlers::{handler}"',
                *lines,
            ]
        )


@pytest.fixture(scope="session")
def triggers() -> type[Triggers]:
    return Triggers


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[EventLog]:
    opened = await open_event_log(StoreSettings.from_environment(tmp_path / "state", {}))
    yield opened
    await opened.close()


@pytest.fixture
def make_package(log: EventLog, tmp_path: Path) -> Callable[..., Package]:
    def make(*triggers: str, orchestrator: str = "") -> Package:
        folder = tmp_path / "demo"
        folder.mkdir()
        (folder / "lib.py").write_text(LIB)
        manifest = _manifest(folder, triggers, f"\n[orchestrator]\n{orchestrator}\n")
        return Package(folder, manifest, log, tmp_path / "state")

    return make


def _manifest(folder: Path, triggers: tuple[str, ...], more: str = "") -> Manifest:
    path = folder / "harn.toml"
    head = '[package]\nname = "demo"\n\n[exports]\nhandlers = "lib.py"\n'
    path.write_text(head + "".join(f"\n[[triggers]]\n{trigger}\n" for trigger in triggers) + more)
    return load_manifest(path)
