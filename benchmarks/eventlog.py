"""What appending costs on each backend, beside plain inserts into SQLite in the same run.

    python benchmarks/eventlog.py [SECONDS_PER_FIGURE]

Prints JSON: records per second. `share_of_plain` compares with plain inserts of as many records
a transaction.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import Append, EventLog, Transaction

PAYLOAD = {
    "event_id": "trigger_evt_01931b5c-4d1a-7c31-9a52-7d20c41f86b3",
    "attempt": 1,
    "trigger_id": "triage",
    "binding_key": "triage@v1",
    "handler_kind": "local",
    "target_uri": "lib::on_issue",
    "replay_of_event_id": None,
    "result": {"labels": ["bug", "needs-triage"], "score": 0.75},
}
HEADERS = {
    "event_id": "trigger_evt_01931b5c-4d1a-7c31-9a52-7d20c41f86b3",
    "trace_id": "trace_01931b5c-4d1a-7c31-9a52-7d20c41f86b3",
    "provider": "github",
    "kind": "issues.opened",
    "trigger_id": "triage",
    "binding_key": "triage@v1",
}
BATCH = 6
FAR_FUTURE_MS = 4_000_000_000_000


def record(topic: str) -> Append:
    return Append(topic, "dispatch_started", PAYLOAD, HEADERS)


def plain(path: Path, batch: int, seconds: float) -> float:
    raw, headers = json.dumps(PAYLOAD).encode(), json.dumps(HEADERS)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(
            "CREATE TABLE events (topic TEXT, event_id INTEGER, kind TEXT, payload BLOB,"
            " headers TEXT, occurred_at_ms INTEGER, PRIMARY KEY (topic, event_id))"
        )
        written = 0
        begun = time.perf_counter()
        while time.perf_counter() - begun < seconds:
            connection.execute("BEGIN IMMEDIATE")
            for _ in range(batch):
                written += 1
                row = ("trigger.outbox", written, "dispatch_started", raw, headers, 0)
                connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", row)
            connection.execute("COMMIT")
        return written / (time.perf_counter() - begun)


async def measured(act: Callable[[int], Awaitable[int]], seconds: float) -> float:
    """`act` returns how many records it appended."""
    written = turns = 0
    begun = time.perf_counter()
    while time.perf_counter() - begun < seconds:
        written += await act(turns)
        turns += 1
    return written / (time.perf_counter() - begun)


async def append_alone(log: EventLog, turn: int) -> int:
    return len((await log.append([record("trigger.outbox")], f"alone/{turn}")).records)


async def append_batch(log: EventLog, turn: int) -> int:
    topics = ("triggers.lifecycle", "trigger.outbox", "observability.action_graph")
    records = [record(topics[place % len(topics)]) for place in range(BATCH)]
    return len((await log.append(records, f"batch/{turn}")).records)


async def claim_and_append(log: EventLog, turn: int) -> int:
    def work(transaction: Transaction) -> int:
        if transaction.inbox.claim_expiry("demo", "triage", f"key-{turn}") is not None:
            return 0
        claim = {
            "binding_id": "triage",
            "dedupe_key": f"key-{turn}",
            "expires_at_ms": FAR_FUTURE_MS,
        }
        records = [
            Append("trigger.inbox.claims", "dedupe_claim", claim, HEADERS),
            record("trigger.inbox.envelopes"),
            record("triggers.events"),
        ]
        return len(transaction.append(records).records)

    return await log.transact(work)


async def figures(seconds: float) -> dict[str, dict[str, dict[str, float]]]:
    results: dict[str, dict[str, dict[str, float]]] = {}
    acts = {
        "append_alone": (append_alone, 1),
        "append_batch_of_6": (append_batch, BATCH),
        "transact_with_claim": (claim_and_append, 3),
    }
    with tempfile.TemporaryDirectory() as directory:
        baseline = {
            name: await asyncio.to_thread(plain, Path(directory) / f"{name}.sqlite", batch, seconds)
            for name, (_, batch) in acts.items()
        }
        results["plain_sqlite3"] = {
            name: {"records_per_second": round(rate)} for name, rate in baseline.items()
        }
        for backend in ("sqlite", "file", "memory"):
            settings = StoreSettings.from_environment(
                Path(directory), {"HARN_EVENT_LOG_BACKEND": backend}
            )
            log = await open_event_log(settings)
            results[backend] = {}
            for name, (act, _) in acts.items():
                rate = await measured(partial(act, log), seconds)
                results[backend][name] = {
                    "records_per_second": round(rate),
                    "share_of_plain": round(rate / baseline[name], 3),
                }
            await log.close()
    return results


if __name__ == "__main__":
    per_figure = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    sys.stdout.write(json.dumps(asyncio.run(figures(per_figure)), indent=2) + "\n")
