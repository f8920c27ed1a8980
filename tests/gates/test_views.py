"""Gates as `gate ls` and `gate show` have them, at the edges of their times."""

from __future__ import annotations

import pytest

from harn_temporal.gates.models import Batch, Debounce, RateLimit
from harn_temporal.inspection.gates import detailed_view

QUIET = Debounce(key="event.id", period_ms=1_000)
TEN = Batch(size=10, timeout_ms=1_000)
DUE = "2023-11-14T22:13:21.000Z"
"""A second after the clock of these tests starts."""


async def shown(desk):
    def look(reader):
        [gate] = reader.gates.named("t@v1:k")
        return detailed_view(reader, gate)

    return await desk.log.query(look)


async def test_a_hit_is_in_its_window_to_the_last_millisecond(desk, clock):
    limit = RateLimit(period_ms=1_000, max=5)
    await desk.ask(limit, "a")
    clock.at(500)
    await desk.ask(limit, "b")
    found = []
    for at_ms in (999, 1_000, 1_499, 1_500):
        clock.at(at_ms)
        found.append((await shown(desk))["in_window"])
    assert found == [2, 1, 1, 0]


@pytest.mark.parametrize("gate", [QUIET, TEN])
async def test_who_is_gathered_waits_until_it_is_due(desk, gate):
    await desk.ask(gate, "a")
    view = await shown(desk)
    assert view["due_at"] == DUE
    assert [(each["holder"], each["until"]) for each in view["waiters"]] == [("a", DUE)]


@pytest.mark.parametrize("gate", [QUIET, TEN])
async def test_nothing_is_due_where_everybody_left(desk, gate):
    await desk.ask(gate, "a")
    await desk.abandon("a")
    view = await shown(desk)
    assert (view["waiting"], view["due_at"], view["waiters"]) == (0, None, [])
