"""A package with gates, its store, dispatches that a test starts, and workers to run them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from temporalio.client import Client, WorkflowHandle

from harn_temporal.contracts import DispatchOutcome, DispatchRequest, DispatchState
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import EventLog
from harn_temporal.events import new_event
from harn_temporal.ingestion import ingest
from harn_temporal.manifest import Manifest, load_manifest
from harn_temporal.registry import register
from harn_temporal.temporal.starter import Started, start_dispatch
from harn_temporal.worker import RunningWorker, WorkerOptions, running_worker

T = TypeVar("T")

PROGRAM = Path(__file__).parents[1] / "integration" / "worker_process.py"
BOUND_S = 40.0

LIB = """
import asyncio
import fcntl
import os
import pathlib
import time

from harn_temporal import Waiting

HERE = pathlib.Path(__file__).parent


def works(event):
    return event.raw["n"]


def members(event):
    assert event.batch[0]["id"] == event.id
    return [each["provider_payload"]["raw"]["n"] for each in event.batch]


async def held(event):
    (HERE / f"begun-{event.raw['n']}").touch()
    while not (HERE / f"go-{event.raw['n']}").exists():
        await asyncio.sleep(0.02)
    return event.raw["n"]


async def fails_first(event, context):
    if event.raw["n"] == 0 and context.attempt == 1:
        raise ValueError("once")
    return await held(event)


def fails(event):
    (HERE / f"begun-{event.raw['n']}").touch()
    if event.raw["n"] == 0:
        raise ValueError("always")
    return event.raw["n"]


def waits(event):
    if event.raw["n"] == 0:
        raise Waiting("for an approval")
    return event.raw["n"]


def counted(event, context):
    number = event.raw["n"]
    with open(HERE / "mutex", "w") as mutex:
        fcntl.flock(mutex, fcntl.LOCK_EX)
        mine = open(HERE / f"run-{number}-{context.attempt}", "w")
        fcntl.flock(mine, fcntl.LOCK_EX)
        now = sum(_is_locked(path) for path in HERE.glob("run-*"))
        with open(HERE / "counts", "a") as counts:
            counts.write(f"{now}\\n")
    if number == 5 and context.attempt == 1:
        (HERE / "victim.new").write_text(str(os.getpid()))
        (HERE / "victim.new").rename(HERE / "victim")
        time.sleep(60)
    time.sleep(0.05)
    mine.close()
    return number


def crowded(event, context):
    folder = HERE / context.trigger_id
    folder.mkdir(exist_ok=True)
    with open(folder / "mutex", "w") as mutex:
        fcntl.flock(mutex, fcntl.LOCK_EX)
        mine = open(folder / f"run-{event.raw['n']}-{context.attempt}", "w")
        fcntl.flock(mine, fcntl.LOCK_EX)
        now = sum(_is_locked(path) for path in folder.glob("run-*"))
        with open(folder / "counts", "a") as counts:
            counts.write(f"{now}\\n")
    time.sleep(0.05)
    mine.close()
    return event.raw["n"]


def _is_locked(path):
    with open(path) as other:
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        return False
"""


@dataclass
class Gated:
    """A manifest with a trigger `gated`, perhaps others, and a store."""

    client: Client
    address: str
    folder: Path
    manifest: Manifest
    log: EventLog
    database: Path

    async def request(self, number: int, **changes: Any) -> DispatchRequest:
        event = new_event(
            provider="github",
            kind="push",
            payload={"n": number, **changes.pop("payload", {})},
            **changes.pop("event", {}),
        )
        bindings = await register(self.log, self.manifest.package, self.manifest.bindings)
        batch = changes.pop("batch", None)
        if batch is not None:
            event = event.model_copy(
                update={"batch": [event.to_json(), *(each.event.to_json() for each in batch)]}
            )
        trigger = changes.pop("trigger", "gated")
        [binding] = [each for each in bindings if each.trigger_id == trigger]
        taken = await ingest(self.log, bindings, event, package=self.manifest.package, only=trigger)
        assert taken[0].address is not None
        given: dict[str, Any] = {
            "store_id": self.log.store_id,
            "binding": binding,
            "event_id": event.id,
            "trace_id": event.trace_id,
            "address": taken[0].address,
            "event": event,
        }
        return DispatchRequest(**given | changes)

    async def start(self, number: int, **changes: Any) -> WorkflowHandle[Any, DispatchOutcome]:
        started = await start_dispatch(self.client, self.log, await self.request(number, **changes))
        assert isinstance(started, Started)
        return started.handle

    @asynccontextmanager
    async def worker(self, **options: Any) -> AsyncIterator[RunningWorker]:
        given = WorkerOptions(**{"pump": False} | options)
        async with running_worker(self.client, self.log, self.manifest, given) as running:
            yield running

    @asynccontextmanager
    async def process(self) -> AsyncIterator[asyncio.subprocess.Process]:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(PROGRAM),
            self.address,
            str(self.manifest.path),
            str(self.database),
            "0.3",
            "no-pump",
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        try:
            assert await asyncio.wait_for(process.stdout.readline(), BOUND_S) == b"ready\n"
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def kinds(self, kind: str) -> list[str]:
        """The kinds of the records of all gates of a kind."""
        heads = await self.log.topics(f"trigger.{kind}.")
        return [r.kind for head in heads for r in await self.log.read(head.topic)]

    async def phase(self, handle: WorkflowHandle[Any, DispatchOutcome], phase: str) -> None:
        async def reached() -> bool:
            state = await handle.query("state", result_type=DispatchState)
            return state.phase == phase

        await self.until(reached)

    async def begun(self, number: int) -> None:
        async def fact() -> bool:
            return (self.folder / f"begun-{number}").exists()

        await self.until(fact)

    def let_go(self, number: int) -> None:
        (self.folder / f"go-{number}").touch()

    @staticmethod
    async def until(fact: Callable[[], Awaitable[T]], bound_s: float = BOUND_S) -> T:
        async with asyncio.timeout(bound_s):
            while not (found := await fact()):  # noqa: ASYNC110 - others make it true
                await asyncio.sleep(0.02)
            return found

    @staticmethod
    async def outcomes(
        handles: list[WorkflowHandle[Any, DispatchOutcome]],
    ) -> list[DispatchOutcome]:
        async with asyncio.timeout(BOUND_S):
            return list(await asyncio.gather(*(handle.result() for handle in handles)))


@pytest.fixture
async def make_gated(
    temporal_client: Client, temporal_address: str, tmp_path: Path
) -> AsyncIterator[Callable[..., Awaitable[Gated]]]:
    logs: list[EventLog] = []

    async def make(handler: str, *lines: str, **more: Any) -> Gated:
        (tmp_path / "lib.py").write_text(LIB)
        triggers = {"gated": (handler, *lines), **more.pop("others", {})}
        text = '[package]\nname = "gated"\n'
        for trigger_id, (function, *rest) in triggers.items():
            text += (
                f'\n[[triggers]]\nid = "{trigger_id}"\nkind = "webhook"\nprovider = "github"\n'
                f'match = {{}}\nhandler = "{function}"\n' + "\n".join(rest) + "\n"
            )
        (tmp_path / "harn.toml").write_text(text)
        database = tmp_path / "events.sqlite"
        log = await open_event_log(StoreSettings("sqlite", database), **more)
        logs.append(log)
        return Gated(
            temporal_client,
            temporal_address,
            tmp_path,
            load_manifest(tmp_path / "harn.toml"),
            log,
            database,
        )

    yield make
    for log in logs:
        await log.close()
