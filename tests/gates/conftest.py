"""Gates of one store, with a clock that stands still until a test moves it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harn_temporal.contracts import EventAddress
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import EventLog
from harn_temporal.gates.admission import admit
from harn_temporal.gates.circuit import ask_circuit, tell_circuit
from harn_temporal.gates.decisions import Asker
from harn_temporal.gates.identity import GateKey
from harn_temporal.gates.leaving import abandon, release, renew, sweep
from harn_temporal.gates.models import (
    Batch,
    Concurrency,
    Debounce,
    RateLimit,
    Throttle,
)

START_MS = 1_700_000_000_000
TTL_MS = 600_000
KINDS = {
    Batch: "batch",
    Debounce: "debounce",
    RateLimit: "rate_limit",
    Throttle: "throttle",
    Concurrency: "concurrency",
}


class HandClock:
    def __init__(self) -> None:
        self.now_ms = START_MS

    def __call__(self) -> int:
        return self.now_ms

    def at(self, ms: int) -> None:
        """So long after the start."""
        self.now_ms = START_MS + ms


@dataclass
class Desk:
    """Asks the gates of a store. Holders are letters; times are milliseconds after the start."""

    kind: str
    directory: Path
    clock: HandClock = field(default_factory=HandClock)
    opened: list[EventLog] = field(default_factory=list)

    async def open(self) -> EventLog:
        environ = {"HARN_EVENT_LOG_BACKEND": self.kind}
        settings = StoreSettings.from_environment(self.directory, environ)
        self.opened.append(await open_event_log(settings, self.clock))
        return self.log

    @property
    def log(self) -> EventLog:
        return self.opened[-1]

    async def close(self) -> None:
        for log in self.opened:
            await log.close()

    async def reopen(self) -> None:
        """As after a crash: nothing but the store is left."""
        if self.kind != "memory":
            await self.close()
            await self.open()

    def key(self, gate: Any, value: Any = "k", binding: str = "t@v1") -> GateKey:
        kind: Any = KINDS.get(type(gate), "singleton")
        return GateKey(kind=kind, binding_key=binding, keyed=True, value=value)

    async def ask(self, gate: Any, holder: str, value: Any = "k", **changes: Any) -> Any:
        key = self.key(gate, value)
        fields: dict[str, Any] = {
            "permit_id": f"permit-{holder}",
            "ttl_ms": TTL_MS,
            "event_id": f"event-{holder}",
            "address": EventAddress(topic="trigger.inbox.envelopes", event_id=7),
        }
        asker = Asker(holder=holder, **{**fields, **changes})
        return await self.log.transact(lambda tx: admit(tx, gate, key, asker))

    async def says(self, gate: Any, holder: str, value: Any = "k", **changes: Any) -> Any:
        """`True` for granted, `False` for skip, and the time after the start for wait."""
        found = await self.ask(gate, holder, value, **changes)
        if found.verdict == "wait":
            return found.until_ms - START_MS
        return found.verdict == "granted"

    async def release(self, holder: str) -> list[str]:
        wakes = await self.log.transact(lambda tx: release(tx, holder))
        return [wake.holder for wake in wakes]

    async def abandon(self, holder: str, **named: Any) -> list[str]:
        wakes = await self.log.transact(lambda tx: abandon(tx, holder, **named))
        return [wake.holder for wake in wakes]

    async def renew(self, holder: str, ttl_ms: int = TTL_MS) -> list[str]:
        permits = await self.log.transact(lambda tx: renew(tx, holder, ttl_ms))
        return [permit.gate for permit in permits]

    async def sweep(self, limit: int = 100, idle_ms: int = 0) -> Any:
        return await self.log.transact(lambda tx: sweep(tx, limit, idle_ms=idle_ms))

    async def circuit(self, holder: str, ttl_ms: int = 30_000) -> str:
        answer = await self.log.transact(
            lambda tx: ask_circuit(tx, "a2a://host/agent", holder, ttl_ms=ttl_ms)
        )
        return answer.state

    async def tell(self, holder: str, attempt: int = 1, *, failed: bool) -> Any:
        return await self.log.transact(
            lambda tx: tell_circuit(tx, "a2a://host/agent", holder, attempt, failed=failed)
        )

    async def kinds(self, gate: Any, value: Any = "k") -> list[str]:
        """The kinds of the records of a gate."""
        return [record.kind for record in await self.log.read(self.key(gate, value).topic)]


@pytest.fixture(params=["sqlite", "memory", "file"])
async def desk(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(request.param, tmp_path)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def sqlite_desk(tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk("sqlite", tmp_path)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
def clock(desk: Desk) -> HandClock:
    return desk.clock


@pytest.fixture
def desk_type() -> type[Desk]:
    return Desk
