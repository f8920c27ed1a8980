"""The sweep of permits whose holders are gone without a word."""

from __future__ import annotations

from harn_temporal.activities.gate_sweep import OLD_MS, GateSweep
from harn_temporal.activities.gate_wakes import Wakes
from harn_temporal.gates.admission import admit
from harn_temporal.gates.decisions import Asker
from harn_temporal.gates.models import Concurrency, Singleton

MANY = Concurrency(max=450)


class Temporal:
    """Knows which workflows are not open, and whom it was asked about or to signal."""

    def __init__(self, **lives):
        self.lives = lives
        self.asked = []
        self.told = []

    async def describe(self, holder):
        self.asked.append(holder)
        return self.lives.get(holder, "open")

    async def signal(self, holder):
        self.told.append(holder)

    async def swept_by(self, desk):
        wakes = Wakes(self.signal)
        await GateSweep(desk.log, self.describe, wakes).once()
        await wakes.sent()


async def test_every_permit_of_a_gate_is_looked_at(desk, clock):
    holders = [f"h{number:03}" for number in range(450)]

    def ask(tx):
        for holder in [*holders, "next"]:
            asker = Asker(holder=holder, permit_id=holder, ttl_ms=600_000 + int(holder == "h449"))
            admit(tx, MANY, desk.key(MANY), asker)

    await desk.log.transact(ask)
    clock.at(OLD_MS + 1)
    temporal = Temporal(h449="closed")
    await temporal.swept_by(desk)
    assert temporal.asked == holders
    assert temporal.told == ["next"]
    assert (await desk.ask(MANY, "next", permit_id="next")).verdict == "granted"
    assert (await desk.ask(MANY, "another")).verdict == "wait"


async def test_permits_of_many_gates_are_looked_at_once_they_are_old(desk, clock):
    for number in range(120):
        await desk.ask(Singleton(), f"h{number}", number)
    clock.at(OLD_MS)
    temporal = Temporal(h7="closed", h8="unknown")
    await temporal.swept_by(desk)
    assert temporal.asked == []
    clock.at(OLD_MS + 1)
    await temporal.swept_by(desk)
    assert sorted(temporal.asked) == sorted(f"h{number}" for number in range(120))
    assert [await desk.says(Singleton(), "new", number) for number in (6, 7, 8)] == [
        False,
        True,
        True,
    ]


async def test_a_job_that_temporal_does_not_know_keeps_its_permit(desk, clock):
    """Its consumer may run it in its own history."""
    await desk.ask(Singleton(), "job/triage/1/first", 1)
    await desk.ask(Singleton(), "job/triage/2/first", 2)
    clock.at(OLD_MS + 1)
    temporal = Temporal(**{"job/triage/1/first": "unknown", "job/triage/2/first": "closed"})
    await temporal.swept_by(desk)
    assert [await desk.says(Singleton(), "new", number) for number in (1, 2)] == [False, True]
