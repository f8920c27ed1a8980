"""A dispatch at all gates of its binding, in one transaction."""

from __future__ import annotations

from harn_temporal.gates.admission import pass_gates
from harn_temporal.gates.decisions import Asker
from harn_temporal.gates.models import Concurrency, RateLimit, Singleton, Throttle

GATES = [
    RateLimit(period_ms=1_000, max=3),
    Throttle(period_ms=1_000, max=2),
    Singleton(),
    Concurrency(max=1),
]


async def passing(desk, holder, passed=0, value="k"):
    gates = [(gate, desk.key(gate, value)) for gate in GATES]
    asker = Asker(holder=holder, permit_id=f"p-{holder}", ttl_ms=1_000)
    return await desk.log.transact(lambda tx: pass_gates(tx, gates, asker, passed))


async def test_gates_are_passed_until_one_stops_it(desk, clock):
    first = await passing(desk, "a")
    assert (first.passed, first.stopped) == (4, None)
    assert [permit.kind for permit in first.permits] == ["singleton", "concurrency"]
    second = await passing(desk, "b")
    assert (second.passed, second.stopped.verdict) == (2, "skip")
    third = await passing(desk, "c")
    assert (third.passed, third.stopped.verdict, third.stopped.kind) == (1, "wait", "throttle")
    fourth = await passing(desk, "d")
    assert (fourth.passed, fourth.stopped.detail["max"]) == (0, 3)
    await desk.release("a")
    clock.at(1_000)
    again = await passing(desk, "c", passed=1)
    assert (again.passed, again.stopped) == (4, None)


async def test_what_was_granted_stays_granted(desk):
    once = await passing(desk, "a")
    assert await passing(desk, "a") == once
    assert (await desk.kinds(GATES[0])).count("rate_limit_allowed") == 1
    assert (await desk.kinds(GATES[1])).count("throttle_acquired") == 1
