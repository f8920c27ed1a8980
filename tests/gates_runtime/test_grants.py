"""Whoever was let through a gate finds out, whatever became of the worker that let it through."""

from __future__ import annotations

import pytest

from harn_temporal.activities.gate_grants import GrantWatch
from harn_temporal.activities.gate_wakes import Wakes
from harn_temporal.gates.leaving import abandon


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr("harn_temporal.activities.gate_grants.INTERVAL_S", 0.1)
    monkeypatch.setattr("harn_temporal.activities.gate_grants.SETTLED_MS", 0)


async def test_a_grant_that_nobody_told_of(make_gated, hurried):
    """As `gate release` grants it, and a worker that dies right after its commit."""
    gated = await make_gated("held", "concurrency = { max = 1 }")
    async with gated.worker():
        first = await gated.start(0)
        await gated.begun(0)
        second = await gated.start(1)
        await gated.phase(second, "gate_wait")
        wakes = await gated.log.transact(lambda tx: abandon(tx, first.id, reason="a test"))
        assert [each.holder for each in wakes] == [second.id]
        await gated.begun(1)
        for number in (0, 1):
            gated.let_go(number)
        outcomes = await gated.outcomes([first, second])
    assert [each.status for each in outcomes] == ["succeeded", "succeeded"]


async def test_who_has_begun_is_not_told(make_gated, hurried):
    gated = await make_gated("held", "concurrency = { max = 1 }")
    told = []

    async def signal(holder):
        told.append(holder)

    wakes = Wakes(signal)
    async with gated.worker():
        first = await gated.start(0)
        await gated.begun(0)
        second = await gated.start(1)
        await gated.phase(second, "gate_wait")
        gated.let_go(0)
        await gated.begun(1)
        found = await gated.log.query(lambda reader: reader.gates.waited_for(0, 2**60, 10))
        assert [each.holder for each in found] == [second.id]
        await GrantWatch(gated.log, wakes).once()
        await wakes.sent()
        assert told == []
        gated.let_go(1)
        await gated.outcomes([first, second])
