"""Queues on every backend, with a clock that stands still, and the fold as records.md has it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import EventLog
from harn_temporal.queue.models import NewJob
from harn_temporal.queue.operations import WorkerQueue
from harn_temporal.scheduler import Policy

START_MS = 1_700_000_000_000


class HandClock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.now_ms = START_MS

    def __call__(self) -> int:
        return self.now_ms


@dataclass
class Bench:
    """One store, opened as often as a test likes, each time with a clock of its own if wanted."""

    kind: str
    directory: Path
    clock: HandClock = field(default_factory=HandClock)
    opened: list[EventLog] = field(default_factory=list)

    @property
    def settings(self) -> StoreSettings:
        return StoreSettings.from_environment(self.directory, {"HARN_EVENT_LOG_BACKEND": self.kind})

    async def open(self, clock: HandClock | None = None) -> EventLog:
        log = await open_event_log(self.settings, clock or self.clock)
        self.opened.append(log)
        return log

    async def close(self) -> None:
        for log in self.opened:
            await log.close()

    def foreign(
        self,
        topic: str,
        kind: str,
        payload: Any,
        headers: dict[str, str] | None = None,
        at_ms: int = START_MS,
    ) -> int:
        """Append to the SQLite file by plain SQL, as Harn does."""
        raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        path = self.settings.path
        assert path is not None
        with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(
                "INSERT INTO topic_heads VALUES (?, 1) "
                "ON CONFLICT DO UPDATE SET last_id = last_id + 1",
                (topic,),
            )
            query = "SELECT last_id FROM topic_heads WHERE topic = ?"
            (event_id,) = connection.execute(query, (topic,)).fetchone()
            connection.execute(
                "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)",
                (topic, event_id, kind, raw, json.dumps(headers or {}), at_ms),
            )
            connection.execute("COMMIT")
        return int(event_id)


@pytest.fixture(params=["sqlite", "memory", "file"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(request.param, tmp_path)
    yield made
    await made.close()


@pytest.fixture
async def sqlite_bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench("sqlite", tmp_path)
    yield made
    await made.close()


@pytest.fixture
async def log(bench: Bench) -> EventLog:
    return await bench.open()


@pytest.fixture
def clock(bench: Bench) -> HandClock:
    return bench.clock


@pytest.fixture
def queue(log: EventLog) -> WorkerQueue:
    return WorkerQueue(log, "triage", Policy())


def event(number: int, tenant: str | None = None) -> dict[str, Any]:
    return {
        "id": f"trigger_evt_{number}",
        "provider": "github",
        "kind": "issues.opened",
        "received_at": "2026-01-02T03:04:05.000Z",
        "occurred_at": None,
        "dedupe_key": f"delivery-{number}",
        "trace_id": f"trace_{number}",
        "tenant_id": tenant,
        "headers": {},
        "provider_payload": {"provider": "github", "event": "issues", "raw": {"n": number}},
        "signature_status": {"state": "unsigned"},
    }


@pytest.fixture
def new_job() -> Callable[..., NewJob]:
    def make(number: int = 1, tenant: str | None = None, **changes: Any) -> NewJob:
        fields: dict[str, Any] = {
            "queue": "triage",
            "trigger_id": "review",
            "binding_key": "review@v1",
            "binding_version": 1,
            "event": event(number, tenant),
        }
        return NewJob(**{**fields, **changes})

    return make
