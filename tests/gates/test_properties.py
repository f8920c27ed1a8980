"""Random sequences: never more than max, nobody forgotten, the tables the fold of the log."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harn_temporal.gates.models import Batch, Concurrency, Debounce, RateLimit, Singleton, Throttle

HOLDERS = [f"h{n}" for n in range(8)]
TTL_MS = 50

holders = st.sampled_from(HOLDERS)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), holders, st.integers(0, 2)),
        st.tuples(st.just("ask"), holders, st.integers(0, 2)),
        st.tuples(st.just("release"), holders),
        st.tuples(st.just("abandon"), holders),
        st.tuples(st.just("renew"), holders),
        st.tuples(st.just("sweep")),
        st.tuples(st.just("wait"), st.integers(1, 60)),
        st.tuples(st.just("reopen")),
    ),
    max_size=40,
)
PROPERTY = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(params=["sqlite", "memory", "file"])
def kind(request):
    return request.param


class Model:
    """The concurrency gate in memory, written without the code under test."""

    def __init__(self, most):
        self.most = most
        self.held = {}
        self.waiting = {}
        self.arrivals = 0

    def fill(self, now):
        woken = []
        while self.waiting and len(self.held) < self.most:
            holder = min(self.waiting, key=self.waiting.__getitem__)
            del self.waiting[holder]
            self.held[holder] = now + TTL_MS
            woken.append(holder)
        return woken

    def expire(self, now):
        for holder in [each for each, until in self.held.items() if until <= now]:
            del self.held[holder]

    def ask(self, holder, rank, now):
        if holder in self.held:
            if self.held[holder] <= now:
                self.held[holder] = now + TTL_MS
            return True, []
        if len(self.held) >= self.most:
            self.expire(now)
        if holder not in self.waiting:
            self.arrivals += 1
            self.waiting[holder] = (rank, now, self.arrivals)
        woken = self.fill(now)
        return holder in self.held, [each for each in woken if each != holder]


@PROPERTY
@given(steps=STEPS, most=st.integers(1, 3))
def test_concurrency_is_what_it_says(kind, desk_type, steps, most):
    asyncio.run(run_concurrency(kind, desk_type, steps, most))


async def run_concurrency(kind, desk_type, steps, most):
    gate, model = Concurrency(max=most), Model(most)
    with tempfile.TemporaryDirectory() as folder:
        desk = desk_type(kind, Path(folder))
        await desk.open()
        for step in steps:
            await one_step(desk, gate, model, step)
            assert await tables(desk, gate) == (model.held, sorted_waiters(model))
            assert len(model.held) <= most
            assert not model.waiting or len(model.held) == most
        grown = await dump(desk.log, idle=False)
        await desk.log.rebuild()
        assert await dump(desk.log, idle=False) == grown
        await everybody_gets_it(desk, gate, model)
        await desk.close()


async def one_step(desk, gate, model, step):
    now = desk.clock.now_ms
    match step:
        case ("ask", holder, rank):
            answer = await desk.ask(gate, holder, rank=rank, ttl_ms=TTL_MS)
            granted, woken = model.ask(holder, rank, now)
            assert (answer.verdict == "granted") is granted
            assert [wake.holder for wake in answer.wakes] == woken
        case ("release", holder):
            woken = await desk.release(holder)
            if model.held.pop(holder, None) is not None:
                assert woken == model.fill(now)
        case ("abandon", holder):
            model.held.pop(holder, None)
            model.waiting.pop(holder, None)
            assert await desk.abandon(holder) == model.fill(now)
        case ("renew", holder):
            assert len(await desk.renew(holder, TTL_MS)) == (holder in model.held)
            if holder in model.held:
                model.held[holder] = now + TTL_MS
        case ("sweep",):
            model.expire(now)
            swept = await desk.sweep()
            assert [wake.holder for wake in swept.wakes] == model.fill(now)
        case ("wait", ms):
            desk.clock.now_ms += ms
        case ("reopen",):
            await desk.reopen()


async def everybody_gets_it(desk, gate, model):
    while model.held:
        holder = next(iter(model.held))
        del model.held[holder]
        assert await desk.release(holder) == model.fill(desk.clock.now_ms)
    assert not model.waiting
    assert await tables(desk, gate) == ({}, [])


def sorted_waiters(model):
    return sorted(model.waiting, key=model.waiting.__getitem__)


async def tables(desk, gate):
    def look(reader):
        found = reader.gates.find("concurrency", desk.key(gate).gate_id)
        if found is None:
            return {}, []
        held = {each.holder: each.expires_at_ms for each in reader.gates.permits(found.gate, 99)}
        waiting = [each.holder for each in reader.gates.waiters(found.gate, 99)]
        assert (found.held, found.waiting) == (len(held), len(waiting))
        return held, waiting

    return await desk.log.query(look)


GATES = [
    Concurrency(max=2),
    Singleton(),
    Throttle(period_ms=40, max=2),
    RateLimit(period_ms=40, max=2),
    Debounce(key="event.id", period_ms=20, max_wait_ms=50),
    Batch(size=3, timeout_ms=30),
]
MIXED = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(0, 30), st.integers(0, 5), st.sampled_from("kl")),
        st.tuples(st.just("ask"), st.integers(0, 30), st.integers(0, 5), st.sampled_from("kl")),
        st.tuples(st.sampled_from(["release", "abandon", "renew", "fail"]), st.integers(0, 30)),
        st.tuples(st.just("sweep")),
        st.tuples(st.just("wait"), st.integers(1, 40)),
    ),
    max_size=60,
)


@PROPERTY
@given(steps=MIXED, theirs=st.lists(st.booleans(), min_size=60, max_size=60))
def test_the_tables_are_the_fold_of_the_log(kind, desk_type, steps, theirs):
    asyncio.run(run_mixed(kind, desk_type, steps, theirs))


async def run_mixed(kind, desk_type, steps, theirs):
    with tempfile.TemporaryDirectory() as folder:
        desk = desk_type("memory", Path(folder) / "one")
        await desk.open()
        throttled, limited = {"k": [], "l": []}, {"k": [], "l": []}
        for step in steps:
            match step:
                case ("ask", holder, place, value):
                    seen = len(await desk.kinds(GATES[place], value))
                    answer = await desk.ask(GATES[place], f"h{holder}", value, ttl_ms=TTL_MS)
                    fresh = (await desk.kinds(GATES[place], value))[seen:]
                    if fresh == ["throttle_acquired"]:
                        throttled[value].append(desk.clock.now_ms)
                    if fresh == ["rate_limit_allowed"]:
                        limited[value].append(desk.clock.now_ms)
                    if answer.verdict == "wait":
                        assert answer.until_ms > desk.clock.now_ms
                case ("sweep",):
                    await desk.sweep(limit=10_000)
                case ("wait", ms):
                    desk.clock.now_ms += ms
                case ("fail", holder):
                    await desk.tell(f"h{holder}", holder, failed=holder % 5 > 0)
                case (what, holder):
                    await getattr(desk, what)(f"h{holder}")
        for times in (*throttled.values(), *limited.values()):
            assert all(b - a >= 40 for a, b in zip(times, times[2:], strict=False))
        records = [
            record for head in await desk.log.topics() for record in await desk.log.read(head.topic)
        ]
        copy = desk_type(kind, Path(folder) / "two")
        (Path(folder) / "two").mkdir()
        await copy.open()
        for record, foreign in zip(records, theirs * 20, strict=False):
            await append(copy, record, foreign=foreign)
        copied = await dump(copy.log)
        await copy.log.rebuild()
        assert await dump(copy.log) == copied
        await desk.log.rebuild()  # what was swept away as idle comes back with the log
        assert await dump(desk.log) == copied
        assert await copy.log.query(lambda reader: reader.skipped()) == []
        await desk.close()
        await copy.close()


async def append(desk, record, *, foreign):
    """Append a copy of a record, by our code or as another program does."""
    from harn_temporal.eventlog.records import Append

    if not foreign or desk.kind == "memory":
        item = Append(
            record.topic, record.kind, record.payload, record.headers, record.occurred_at_ms
        )
        await desk.log.append([item])
    elif desk.kind == "sqlite":
        with closing(
            sqlite3.connect(desk.directory / "events.sqlite", isolation_level=None, timeout=30)
        ) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(
                "INSERT INTO topic_heads VALUES (?, 1) "
                "ON CONFLICT DO UPDATE SET last_id = last_id + 1",
                (record.topic,),
            )
            connection.execute(
                "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)",
                (
                    record.topic,
                    record.event_id,
                    record.kind,
                    record.raw,
                    json.dumps(dict(record.headers)),
                    record.occurred_at_ms,
                ),
            )
            connection.execute("COMMIT")
    else:
        path = desk.directory / "events" / "topics" / f"{record.topic}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        event = {
            "kind": record.kind,
            "payload": record.payload,
            "headers": dict(record.headers),
            "occurred_at_ms": record.occurred_at_ms,
        }
        with path.open("a") as file:
            file.write(json.dumps({"id": record.event_id, "event": event}) + "\n")


async def dump(log, *, idle=True):
    """All that the tables say about gates and circuits, apart from the numbers of rows."""

    def look(reader):
        tables, found = reader.gates, []
        for gate in tables.page(limit=1000):
            if not idle and gate.idle_from_ms <= reader.now_ms:
                continue
            row = {**asdict(gate), "gate": 0}
            held = [{**asdict(each), "gate": 0} for each in tables.permits(gate.gate, 999)]
            waiting = [{**asdict(each), "gate": 0} for each in tables.waiters(gate.gate, 999)]
            hits = [tables.hits(gate.gate, n, n)[0] for n in range(gate.hits + 1)]
            slots = [tables.slot(gate.gate, n) for n in range(gate.slots + 1)]
            found.append((row, held, waiting, hits, slots, tables.freed(gate.gate)))
        return found, reader.circuits.page(limit=1000)

    return await log.query(look)


JUNK_HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "holder": st.sampled_from(["h1", ""]),
        "harn_temporal.gate_id": st.just("0" * 32),
        "permit_id": st.text(max_size=3),
        "expires_at_ms": st.sampled_from(["5", "-1", "x", "9" * 30]),
    },
)
JUNK_KINDS = [
    "concurrency_acquired", "concurrency_waiting", "throttle_wait", "throttle_acquired",
    "rate_limit_allowed", "debounce_seen", "batch_enqueued", "batch_dispatched", "gate_abandoned",
    "gate_renewed", "circuit_opened", "other",
]  # fmt: skip
JUNK_VALUES = st.sampled_from([0, 1, -1, 2**61, 2**63 - 1, -(2**63), 2**70, "a", None, "new", 1.5])
JUNK_NAMES = [
    "gate", "binding_key", "max", "period_ms", "at_ms", "until_ms", "turn", "rank", "ttl_ms",
    "arrived_at_ms", "first_at_ms", "due_at_ms", "size", "batch", "freed_seq", "destination",
    "failures", "open_until_ms", "probe", "probe_until_ms",
]  # fmt: skip
JUNK = st.tuples(
    st.sampled_from(["concurrency", "throttle", "rate_limit", "debounce", "batch", "circuit"]),
    st.sampled_from(JUNK_KINDS),
    st.dictionaries(st.sampled_from(JUNK_NAMES), JUNK_VALUES) | st.just([]),
    JUNK_HEADERS,
)


@PROPERTY
@given(junk=st.lists(JUNK, max_size=20))
def test_no_record_stops_the_fold(desk_type, junk):
    asyncio.run(run_junk(desk_type, junk))


async def run_junk(desk_type, junk):
    from harn_temporal.eventlog.records import Append

    with tempfile.TemporaryDirectory() as folder:
        desk = desk_type("memory", Path(folder))
        await desk.open()
        before = await dump(desk.log)
        for gate, kind, payload, headers in junk:
            await desk.log.append([Append(f"trigger.{gate}.x", kind, payload, headers)])
        grown = await dump(desk.log)
        if not any("harn_temporal.gate_id" in h and "holder" in h for *_, h in junk):
            assert grown[0] == before[0]  # gate records of others are not folded
        await desk.log.rebuild()
        assert await dump(desk.log) == grown
        assert await desk.says(Concurrency(max=1), "a", "fresh") is True
        await desk.close()
