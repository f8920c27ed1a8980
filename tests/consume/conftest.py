"""A package whose handlers take the jobs of a queue, and consumers that a test starts."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from temporalio.client import Client

from harn_temporal.consume_contracts import ConsumeResult, ConsumeState
from harn_temporal.consumers import ConsumerHandle, ConsumerOptions, start_consumer
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import Append, EventLog
from harn_temporal.events import new_event
from harn_temporal.manifest import Manifest, load_manifest
from harn_temporal.naming import consumer_queue
from harn_temporal.queue.keeping import release
from harn_temporal.queue.models import ClaimRef, NewJob
from harn_temporal.queue.operations import enqueue_many
from harn_temporal.worker import WorkerOptions, running_worker

T = TypeVar("T")

BOUND_S = 40.0

LIB = """
import asyncio
import pathlib


def works(event):
    return event.raw["n"]


def fails(event):
    raise ValueError("always")


async def slow(event):
    folder = pathlib.Path(__file__).parent
    (folder / f"begun-{event.raw['n']}").touch()
    while not (folder / "go").exists():
        await asyncio.sleep(0.02)
    return event.raw["n"]


def fails_once(event, context):
    if context.attempt == 1:
        raise ValueError("the first attempt")
    return event.raw["n"]
"""

TRIGGER = """
[[triggers]]
id = "{id}"
kind = "webhook"
provider = "github"
match = {{ events = ["push"] }}
handler = "{handler}"
{more}
"""

TRIGGERS = [
    ("works", "handlers::works", ""),
    ("fails", "handlers::fails", "retry = { max = 1 }"),
    ("slow", "handlers::slow", ""),
    ("retries_soon", "handlers::fails_once",
     'retry = { max = 3, backoff = "linear", delay_ms = 1500 }'),
    ("retries_late", "handlers::fails",
     'retry = { max = 3, backoff = "linear", delay_ms = 36000000 }'),
    ("takes_turns", "handlers::slow", "concurrency = { max = 1 }"),
    ("forwards", "worker://elsewhere", ""),
]  # fmt: skip


@dataclass
class Queue:
    """The queue `triage` of a package, and what became of its jobs."""

    client: Client
    log: EventLog
    manifest: Manifest
    folder: Path

    async def fill(self, trigger_id: str, count: int = 1, **changes: Any) -> list[int]:
        """Append jobs, numbered from 0; returns their ids."""
        tenant = changes.pop("tenant", None)
        more = {"padding": changes.pop("padding")} if "padding" in changes else {}
        jobs = [
            NewJob(
                queue="triage",
                trigger_id=trigger_id,
                binding_key=f"{trigger_id}@v1",
                binding_version=1,
                event=new_event(
                    provider="github", kind="push", payload={"n": number, **more}, tenant_id=tenant
                ).to_json(),
                **changes,
            )
            for number in range(count)
        ]
        return [receipt.job_event_id for receipt in await enqueue_many(self.log, jobs)]

    @asynccontextmanager
    async def worker(
        self, *consume: ConsumerOptions, consumer_id: str | None = "worker-a", **options: Any
    ) -> AsyncIterator[None]:
        """It serves what is given, or else works for one consumer that a test starts."""
        if not consume and consumer_id is not None:
            options["tasks"] = self.tasks(consumer_id)
        given = WorkerOptions(pump=False, consume=consume, **options)
        async with running_worker(self.client, self.log, self.manifest, given):
            yield

    def tasks(self, consumer_id: str) -> str:
        return consumer_queue(self.log.store_id, self.manifest.package, consumer_id)

    async def start(self, mode: Any = "drain", **changes: Any) -> ConsumerHandle:
        return await start_consumer(
            self.client,
            self.log,
            self.manifest.package,
            self.options(mode, **changes),
            search_attributes=True,
            heartbeat_timeout_ms=30_000,
        )

    @staticmethod
    def options(mode: Any = "drain", **changes: Any) -> ConsumerOptions:
        given: dict[str, Any] = {
            "queue": "triage",
            "consumer_id": "worker-a",
            "mode": mode,
            "max_concurrent": 4,
        }
        return ConsumerOptions(**given | changes)

    async def drain(self, **changes: Any) -> ConsumeResult:
        async with self.worker():
            return await (await self.start(**changes)).result()

    async def records(self, part: str, kind: str | None = None) -> list[dict[str, Any]]:
        topic = "worker.triage" + (f".{part}" if part else "")
        found = await self.log.read(topic, 0, 100_000)
        return [record.payload for record in found if kind in (None, record.kind)]

    async def acked(self) -> list[int]:
        return sorted(each["job_event_id"] for each in await self.records("claims", "job_acked"))

    async def responses(self) -> dict[int, dict[str, Any]]:
        return {each["job_event_id"]: each for each in await self.records("responses")}

    async def claims_of(self, job: int) -> list[str]:
        claims = await self.records("claims")
        return [each["claim_id"] for each in claims if each["job_event_id"] == job]

    async def release(self, job: int, claim_id: str) -> None:
        claim = ClaimRef(job_event_id=job, claim_id=claim_id)
        await self.log.transact(lambda tx: release(tx, "triage", "worker-a", [claim], "a test"))

    async def take_over(self, job: int) -> None:
        """Append another consumer's claim, made when the present one would have expired."""
        expires = max(
            each["expires_at_ms"]
            for each in await self.records("claims")
            if each["job_event_id"] == job and "expires_at_ms" in each
        )
        payload = {
            "job_event_id": job,
            "claim_id": str(uuid.uuid4()),
            "consumer_id": "another",
            "claimed_at_ms": expires + 1,
            "expires_at_ms": expires + 3_600_000,
        }
        await self.log.append([Append("worker.triage.claims", "job_claimed", payload)])

    async def waiting(self, gate: str) -> int:
        """How many wait at the gates of a kind."""
        gates = await self.log.query(lambda reader: reader.gates.page())
        return sum(each.waiting for each in gates if each.kind == gate)

    async def kinds(self) -> Counter[str]:
        return Counter(record.kind for record in await self.log.read("worker.triage.claims"))

    async def state(self, handle: ConsumerHandle) -> ConsumeState:
        return await handle.query("state", result_type=ConsumeState)

    @staticmethod
    async def until(fact: Callable[[], Awaitable[T]], bound_s: float = BOUND_S) -> T:
        async with asyncio.timeout(bound_s):
            while not (found := await fact()):  # noqa: ASYNC110 - others make it true
                await asyncio.sleep(0.02)
            return found


@pytest.fixture
def package() -> str:
    return "consumer"


@pytest.fixture
async def queue(temporal_client: Client, tmp_path: Path, package: str) -> AsyncIterator[Queue]:
    (tmp_path / "lib.py").write_text(LIB)
    head = f'[package]\nname = "{package}"\n\n[exports]\nhandlers = "lib.py"\n'
    text = head + "".join(
        TRIGGER.format(id=id_, handler=handler, more=more) for id_, handler, more in TRIGGERS
    )
    (tmp_path / "harn.toml").write_text(text)
    log = await open_event_log(StoreSettings("sqlite", tmp_path / "events.sqlite"))
    yield Queue(temporal_client, log, load_manifest(tmp_path / "harn.toml"), tmp_path)
    await log.close()
