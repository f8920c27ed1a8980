"""A projection that is behind catches up in short transactions."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

from harn_temporal.eventlog import projections
from harn_temporal.queue.operations import WorkerQueue
from harn_temporal.queue.reading import figures
from harn_temporal.scheduler import Policy


def flood(path, new_job, count: int) -> None:
    """What Harn appends while nothing of ours runs."""
    job = new_job(1).model_dump(exclude={"available_at_ms"})
    rows = []
    for number in range(1, count + 1):
        job["event"] = {**job["event"], "tenant_id": f"t{number % 100}"}
        raw = json.dumps(job).encode()
        rows.append(("worker.triage", number, "trigger_dispatch", raw, "{}", number))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.execute("INSERT INTO topic_heads VALUES ('worker.triage', ?)", (count,))


class Transactions:
    """How many records of others each write transaction has folded."""

    def __init__(self, writer) -> None:
        self.folded: list[int] = []
        self._one, self._commit = writer.one, writer.commit
        self._count = 0
        writer.one, writer.commit = self.one, self.commit

    def one(self, topic: str, event_id: int):
        self._count += 1
        return self._one(topic, event_id)

    def commit(self) -> None:
        self._commit()
        self.folded.append(self._count)
        self._count = 0


async def caught_up(bench, new_job, count: int) -> list[int]:
    """Records folded in each transaction, once a claim needed all that others appended."""
    log = await bench.open()
    flood(bench.settings.path, new_job, count)
    transactions = Transactions(log._writer)
    claims = (await WorkerQueue(log, "triage", Policy()).claim("c", 3)).claims
    assert [claim.job_event_id for claim in claims] == [1, 2, 3]
    (shown,) = await log.query(figures)
    assert (shown["ready"], shown["in_flight"]) == (count - 3, 3)
    assert sum(transactions.folded) == count
    return transactions.folded


async def test_a_backlog_is_folded_in_short_transactions(sqlite_bench, new_job):
    assert max(await caught_up(sqlite_bench, new_job, 100_000)) <= projections.BATCH_RECORDS


async def test_a_transaction_ends_when_its_time_is_up(sqlite_bench, new_job, monkeypatch):
    monkeypatch.setattr(projections, "BATCH_SECONDS", 0)
    assert max(await caught_up(sqlite_bench, new_job, 50)) == 1


async def test_a_flood_of_expired_claims_is_taken_back_in_short_transactions(sqlite_bench, new_job):
    log = await sqlite_bench.open()
    flood(sqlite_bench.settings.path, new_job, 1500)
    queue = WorkerQueue(log, "triage", Policy())
    for _ in range(6):
        await queue.claim("c", 250, ttl_ms=1000)
    assert (await log.query(figures))[0]["in_flight"] == 1500
    sqlite_bench.clock.now_ms += 1000
    claims = (await queue.claim("d", 2)).claims
    assert [claim.job_event_id for claim in claims] == [1, 2]
    (shown,) = await log.query(figures)
    assert (shown["ready"], shown["in_flight"]) == (1498, 2)
