"""What gates cost in the store: asking and giving back, with few keys and many, and with waiters.

    python benchmarks/gates.py [--quick] [--seconds 1]

Prints JSON: transactions a second in one process on one SQLite file. For each gate `hot_key` is
one key for all and `keys_10k` is ten thousand in turn; concurrency also with 1 and with 10,000
that wait. `flatness` is the slower of each pair over the faster one. `append` is a transaction
that only appends one record: what everything else is measured against.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import platform
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from harn_temporal.contracts import EventAddress
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import Append, EventLog, Transaction
from harn_temporal.gates.admission import admit
from harn_temporal.gates.decisions import Asker
from harn_temporal.gates.identity import GateKey
from harn_temporal.gates.leaving import release
from harn_temporal.gates.models import (
    AnyGate,
    Batch,
    Concurrency,
    Debounce,
    GateKind,
    RateLimit,
    Singleton,
    Throttle,
)

KEYS = 10_000
WAITERS = 10_000
TTL_MS = 3_600_000
CHUNK = 200
WHILES = 5
ADDRESS = EventAddress(topic="trigger.inbox.envelopes", event_id=1)

GATES: dict[GateKind, AnyGate] = {
    "concurrency": Concurrency(max=10),
    "singleton": Singleton(),
    "throttle": Throttle(period_ms=60_000, max=30),
    "rate_limit": RateLimit(period_ms=60_000, max=1_000),
    "debounce": Debounce(key="event.id", period_ms=30_000),
    "batch": Batch(size=10, timeout_ms=30_000),
}
HELD = ("concurrency", "singleton")


class Arrivals:
    """Gives dispatches in turn, each with the key that is next."""

    def __init__(self, kind: GateKind, keys: int) -> None:
        self.gate = GATES[kind]
        self.kind = kind
        self._numbers: Iterator[int] = itertools.count()
        self._keys = keys

    def next(self) -> tuple[GateKey, Asker]:
        number = next(self._numbers)
        key = GateKey(
            kind=self.kind, binding_key="task@v1", keyed=True, value=f"tenant-{number % self._keys}"
        )
        holder = f"dispatch/bench/{self.kind}/{number:012}"
        asker = Asker(
            holder=holder, permit_id=f"p{number}", ttl_ms=TTL_MS, event_id=holder, address=ADDRESS
        )
        return key, asker


def ask(arrivals: Arrivals, tx: Transaction) -> None:
    key, asker = arrivals.next()
    admit(tx, arrivals.gate, key, asker)


def ask_and_release(arrivals: Arrivals, tx: Transaction) -> None:
    key, asker = arrivals.next()
    admit(tx, arrivals.gate, key, asker)
    release(tx, asker.holder)


async def rate(log: EventLog, work: Callable[[Transaction], object], seconds: float) -> float:
    """The best of several short whiles, since others use the machine too."""
    return max([await rate_once(log, work, seconds / WHILES) for _ in range(WHILES)])


async def rate_once(log: EventLog, work: Callable[[Transaction], object], seconds: float) -> float:
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        await log.transact(work)
        done += 1
    return done / (time.perf_counter() - began)


async def many(log: EventLog, work: Callable[[Transaction], object], count: int) -> None:
    """So many in few transactions."""

    def some(tx: Transaction) -> None:
        for _ in range(CHUNK):
            work(tx)

    for _ in range(count // CHUNK):
        await log.transact(some)


async def measure_keys(log: EventLog, kind: GateKind, keys: int, seconds: float) -> float:
    """Each key has been used before, so that its rows are there."""
    arrivals = Arrivals(kind, keys)
    act = ask_and_release if kind in HELD else ask

    def work(tx: Transaction) -> None:
        act(arrivals, tx)

    await many(log, work, max(keys, CHUNK))
    return await rate(log, work, seconds)


async def measure_waiters(log: EventLog, waiters: int, seconds: float) -> float:
    """One more waits and one who holds gives back, so that as many wait as before."""
    arrivals = Arrivals("concurrency", 1)
    holders: list[str] = []

    def fill(tx: Transaction) -> None:
        key, asker = arrivals.next()
        admit(tx, arrivals.gate, key, asker)
        holders.append(asker.holder)

    most = GATES["concurrency"]
    assert isinstance(most, Concurrency)
    for _ in range(most.max + min(waiters, CHUNK)):
        await log.transact(fill)
    await many(log, fill, max(waiters - CHUNK, 0))
    turn = iter(holders)

    def work(tx: Transaction) -> None:
        fill(tx)
        release(tx, next(turn))

    return await rate(log, work, seconds)


async def in_new_store(measure: Callable[[EventLog], Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        log = await open_event_log(StoreSettings("sqlite", Path(folder) / "events.sqlite"))
        try:
            return await measure(log)
        finally:
            await log.close()


async def pair(
    names: tuple[str, str], few: Callable[[EventLog], Any], lots: Callable[[EventLog], Any]
) -> dict[str, float]:
    found = [await in_new_store(few), await in_new_store(lots)]
    flatness = round(min(found) / max(found), 2)
    return {**{n: round(f) for n, f in zip(names, found, strict=True)}, "flatness": flatness}


async def measure(seconds: float, keys: int, waiters: int) -> dict[str, Any]:
    def append(tx: Transaction) -> None:
        tx.append([Append("trigger.outbox", "other", {"event_id": "e", "attempt": 1})])

    figures: dict[str, Any] = {
        "append": round(await in_new_store(lambda log: rate(log, append, seconds)))
    }
    for kind in GATES:
        figures[kind] = await pair(
            ("hot_key", f"keys_{keys}"),
            partial(measure_keys, kind=kind, keys=1, seconds=seconds),
            partial(measure_keys, kind=kind, keys=keys, seconds=seconds),
        )
    figures["waiters"] = await pair(
        ("waiting_1", f"waiting_{waiters}"),
        lambda log: measure_waiters(log, 1, seconds),
        lambda log: measure_waiters(log, waiters, seconds),
    )
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a look at whether it runs")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each figure")
    options = parser.parse_args()
    quick = options.quick
    figures = asyncio.run(
        measure(
            0.1 if quick else options.seconds, 200 if quick else KEYS, 400 if quick else WAITERS
        )
    )
    where = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    sys.stdout.write(json.dumps({**where, "transactions_a_second": figures}, indent=2) + "\n")


if __name__ == "__main__":
    main()
