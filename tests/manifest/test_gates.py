from __future__ import annotations

import pytest

from harn_temporal.gates.models import (
    Batch,
    Concurrency,
    Debounce,
    PriorityOrder,
    RateLimit,
    Singleton,
    Throttle,
)
from harn_temporal.manifest.gates import read_gates
from harn_temporal.manifest.problems import Notes, Place, Problems
from harn_temporal.manifest.table import Table


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            {"concurrency": {"key": "event.headers.tenant", "max": 10}},
            {"concurrency": Concurrency(key="event.headers.tenant", max=10)},
        ),
        (
            {"throttle": {"key": "event.id", "period": "1m", "max": 30}},
            {"throttle": Throttle(key="event.id", period_ms=60_000, max=30)},
        ),
        (
            {"rate_limit": {"period": "1w", "max": 1}},
            {"rate_limit": RateLimit(period_ms=604_800_000, max=1)},
        ),
        (
            {"debounce": {"key": "event.id", "period": "30s", "max_wait": "30s"}},
            {"debounce": Debounce(key="event.id", period_ms=30_000, max_wait_ms=30_000)},
        ),
        ({"singleton": {}}, {"singleton": Singleton()}),
        (
            {"batch": {"size": 3, "timeout": "2d"}},
            {"batch": Batch(size=3, timeout_ms=172_800_000)},
        ),
        (
            {"priority": {"key": "event.id", "order": ["a", "b"]}},
            {"priority": PriorityOrder(key="event.id", order=("a", "b"))},
        ),
        ({"priority": "high"}, {}),
        ({"budget": {"daily_cost_usd": 3}}, {}),
    ],
)
def test_a_gate_is_read_in_full(values, expected):
    problems = Problems()
    gates = read_gates(Table(values, Place("harn.toml"), problems), Notes(), "t")
    assert gates == expected
    assert problems.all() == ()


def test_a_budget_of_concurrent_dispatches_reads_as_concurrency_with_a_warning():
    problems, notes = Problems(), Notes()
    table = Table(
        {"budget": {"max_concurrent": 3}}, Place("harn.toml", "[[triggers]] #1"), problems
    )
    assert read_gates(table, notes, "t") == {"concurrency": Concurrency(max=3)}
    assert problems.all() == ()
    assert notes.warnings == [
        (
            "harn.toml, [[triggers]] #1, budget.max_concurrent: read as concurrency = { max = 3 }; "
            "write that instead"
        )
    ]
    assert notes.unused == {}


@pytest.mark.parametrize(("size", "fine"), [(2_000, True), (2_001, False)])
def test_a_batch_has_its_bound(size, fine):
    problems = Problems()
    values = {"batch": {"size": size, "timeout": "1m"}}
    gates = read_gates(Table(values, Place("harn.toml"), problems), Notes(), "t")
    assert bool(gates) is fine
    found = [str(each) for each in problems.all()]
    assert found == [] if fine else "an integer from 1 to 2000" in found[0]
