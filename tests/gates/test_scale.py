"""Cost does not grow with keys, waiters or hits, and what no longer counts is forgotten."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from harn_temporal.eventlog.sqlite_schema import split_script
from harn_temporal.eventlog.statements import load_statements
from harn_temporal.gates.admission import admit
from harn_temporal.gates.decisions import Asker
from harn_temporal.gates.models import (
    Batch,
    Concurrency,
    Debounce,
    RateLimit,
    Singleton,
    Throttle,
)

STATEMENTS = {
    name: text.replace("@", "g_")
    for name, text in load_statements(["sqlite"]).items()
    if name.startswith(("gates.", "circuits."))
}


@pytest.mark.parametrize("name", sorted(set(STATEMENTS) - {"gates.create", "circuits.create"}))
def test_every_statement_goes_by_an_index(name):
    with closing(sqlite3.connect(":memory:")) as connection:
        for create in ("gates.create", "circuits.create"):
            for statement in split_script(STATEMENTS[create]):
                connection.execute(statement)
        names = {part.strip(",();") for part in STATEMENTS[name].replace(":", " :").split()}
        given = {part[1:]: 1 for part in names if part.startswith(":")}
        plan = connection.execute(f"EXPLAIN QUERY PLAN {STATEMENTS[name]}", given).fetchall()
    steps = [row[3] for row in plan if "(subquery" not in row[3]]
    assert not [each for each in steps if each.startswith("SCAN") or "TEMP B-TREE" in each]


async def ask_many(desk, gate, asks):
    """As many as given in one transaction; the verdicts."""

    def work(tx):
        return [
            admit(
                tx,
                gate,
                desk.key(gate, value),
                Asker(holder=holder, permit_id=holder, ttl_ms=1_000_000),
            ).verdict
            for holder, value in asks
        ]

    return await desk.log.transact(work)


async def test_ten_thousand_keys_and_a_hot_one(sqlite_desk):
    desk, gate = sqlite_desk, Concurrency(max=1)
    keys = [(f"h{n}", n) for n in range(10_000)]
    for start in range(0, 10_000, 1_000):
        assert set(await ask_many(desk, gate, keys[start : start + 1_000])) == {"granted"}
    assert set(await ask_many(desk, gate, [(f"w{n}", 77) for n in range(150)])) == {"wait"}
    answer = await desk.ask(gate, "last", 77)
    assert (answer.position, answer.waiting) == (151, 151)
    assert await desk.release("h77") == ["w0"]
    assert await desk.release("w0") == ["w1"]


async def test_a_position_far_behind_is_not_counted(sqlite_desk):
    desk, gate = sqlite_desk, Concurrency(max=1)
    await ask_many(desk, gate, [(f"{n}", "k") for n in range(201)])
    answer = await desk.ask(gate, "last")
    assert (answer.position, answer.waiting) == (None, 201)
    assert answer.until_ms - desk.clock.now_ms == 600_000


@pytest.mark.parametrize(
    "gate", [RateLimit(period_ms=1_000, max=3), Throttle(period_ms=1_000, max=3)]
)
async def test_hits_that_no_longer_decide_are_not_kept(desk, clock, gate):
    for number in range(50):
        await desk.says(gate, f"{number}")
        clock.now_ms += 1_000

    def look(reader):
        [found] = reader.gates.named("t@v1:k")
        return [
            n
            for n in range(found.hits + 1)
            if reader.gates.hits(found.gate, n, n)[0] is not None
            or (found.kind == "throttle" and reader.gates.slot(found.gate, n) is not None)
        ]

    assert await desk.log.query(look) == [48, 49, 50]


async def test_idle_gates_are_forgotten_in_steps(desk, clock):
    limit, only = RateLimit(period_ms=1_000, max=5), Singleton()
    for number in range(5):
        for holder in "abc":
            await desk.says(limit, f"{holder}{number}", number)
    await desk.says(only, "s")

    async def names():
        return [gate.name for gate in await desk.log.query(lambda r: r.gates.page())]

    clock.at(10_999)
    assert (await desk.sweep(idle_ms=10_000)).forgotten == 0
    clock.at(11_000)
    swept = [await desk.sweep(10, idle_ms=10_000) for _ in range(3)]
    assert [each.forgotten for each in swept] == [10, 10, 0]  # 5 gates with 3 hits each
    assert [each.done for each in swept] == [False, False, True]
    assert await names() == ["t@v1:k"]
    assert await desk.says(limit, "new", 1) is True
    await desk.release("s")
    await desk.log.rebuild()
    assert len(await names()) == 6
    clock.at(100_000)
    assert (await desk.sweep(idle_ms=10_000)).forgotten > 0
    assert await names() == []


@pytest.mark.parametrize(
    ("gate", "holders"),
    [
        (Debounce(key="event.id", period_ms=1_000), "a"),
        (Batch(size=10, timeout_ms=1_000), "a"),
        (Throttle(period_ms=1_000, max=1), "xa"),
    ],
)
async def test_a_gate_at_which_somebody_waits_is_not_forgotten(desk, clock, gate, holders):
    for holder in holders:
        await desk.ask(gate, holder)
    clock.at(1_000_000)
    assert (await desk.sweep()).forgotten == 0
    assert await desk.says(gate, "a") is True
    assert (await desk.kinds(gate))[-1] in {
        "debounce_selected",
        "batch_dispatched",
        "throttle_acquired",
    }


async def test_a_gate_is_not_forgotten_before_its_last_turn_is_over(desk, clock):
    gate = Throttle(period_ms=1_000, max=1)
    assert [await desk.says(gate, holder) for holder in "abc"] == [True, 1_000, 2_000]
    for holder in "bc":
        await desk.abandon(holder)
    clock.at(2_999)
    assert (await desk.sweep()).forgotten == 0
    clock.at(3_000)
    assert (await desk.sweep()).forgotten > 0


async def test_gates_are_listed_in_pages(desk):
    for number in range(5):
        await desk.says(Singleton(), f"{number}", f"k{number}")
        await desk.says(Concurrency(max=1), f"{number}", f"k{number}")
    found, after = [], None
    while page := await desk.log.query(lambda r, a=after: r.gates.page(a, 3)):
        found += [(gate.name, gate.kind, gate.held) for gate in page]
        after = page[-1]
    assert found == [
        (f"t@v1:k{n}", kind, 1) for n in range(5) for kind in ("concurrency", "singleton")
    ]
