"""Flow-control gates of a trigger.

A gate's name here is its key in the manifest, except for `priority`, which is a gate only as a
table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harn_temporal.gates.models import (
    Batch,
    Concurrency,
    Debounce,
    Gate,
    PriorityOrder,
    RateLimit,
    Singleton,
    Throttle,
)
from harn_temporal.manifest.expression_checks import cel_key
from harn_temporal.manifest.problems import Notes
from harn_temporal.manifest.table import Table

COUNT_LIMIT = 2**32 - 1
_COUNT = f"an integer from 1 to {COUNT_LIMIT}"

BATCH_LIMIT = 2_000
"""The members of a batch are dispatched in one transaction, and handled in one call."""
_SIZE = f"an integer from 1 to {BATCH_LIMIT}"


def read_gates(table: Table, notes: Notes, trigger_id: str) -> dict[str, Gate]:
    """The gates of a trigger or source that have no problem, by name."""
    gates: dict[str, Gate] = {}
    for name, read in _READERS.items():
        below = table.table(name)
        if below is not None and (gate := read(below)) is not None:
            gates[name] = gate
    order = table.table("priority") if isinstance(table.values.get("priority"), dict) else None
    if order is not None and (gate := _read_priority(order)) is not None:
        gates["priority"] = gate
    limit = _read_budget(table, notes, trigger_id)
    if limit is not None:
        gates["concurrency"] = limit
    return gates


def gates_named(table: Table) -> frozenset[str]:
    """The gates that the keys of a trigger or source ask for, valid or not."""
    named = _READERS.keys() & table.values.keys()
    if isinstance(table.values.get("priority"), dict):
        named = named | {"priority"}
    budget = table.values.get("budget")
    if isinstance(budget, dict) and "max_concurrent" in budget:
        named = named | {"concurrency"}
    return frozenset(named)


def check_together(table: Table, named: frozenset[str]) -> None:
    """Report gates that exclude each other, or lack the one they need."""
    others = ", ".join(f"`{name}`" for name in sorted(named - {"batch"}))
    if "batch" in named and others:
        table.problem("batch", f"goes with no other gate; remove it or {others}")
    if "priority" in named and "concurrency" not in named:
        table.problem("priority", "orders who waits for `concurrency`, which is missing here")


def _read_concurrency(table: Table) -> Gate | None:
    limit = table.required("max", table.integer("max", _COUNT, low=1, high=COUNT_LIMIT), _COUNT)
    key = cel_key(table)
    table.close()
    return Concurrency(max=limit, key=key) if limit is not None else None


def _read_throttle(table: Table) -> Gate | None:
    rate = _read_rate(table)
    return Throttle(period_ms=rate[0], max=rate[1], key=rate[2]) if rate else None


def _read_rate_limit(table: Table) -> Gate | None:
    rate = _read_rate(table)
    return RateLimit(period_ms=rate[0], max=rate[1], key=rate[2]) if rate else None


def _read_rate(table: Table) -> tuple[int, int, str | None] | None:
    period = _required_duration(table, "period")
    limit = table.required("max", table.integer("max", _COUNT, low=1, high=COUNT_LIMIT), _COUNT)
    key = cel_key(table)
    table.close()
    return None if period is None or limit is None else (period, limit, key)


def _read_debounce(table: Table) -> Gate | None:
    key = _required_key(table)
    period = _required_duration(table, "period")
    max_wait = table.duration_ms("max_wait")
    table.close()
    if period is not None and max_wait is not None and max_wait < period:
        table.wrong("max_wait", f'at least the period, which is "{table.values["period"]}"')
        return None
    if key is None or period is None:
        return None
    return Debounce(key=key, period_ms=period, max_wait_ms=max_wait)


def _read_singleton(table: Table) -> Gate | None:
    key = cel_key(table)
    table.close()
    return Singleton(key=key)


def _read_batch(table: Table) -> Gate | None:
    size = table.required("size", table.integer("size", _SIZE, low=1, high=BATCH_LIMIT), _SIZE)
    timeout = _required_duration(table, "timeout")
    key = cel_key(table)
    table.close()
    if size is None or timeout is None:
        return None
    return Batch(size=size, timeout_ms=timeout, key=key)


def _read_priority(table: Table) -> Gate | None:
    key = _required_key(table)
    allowed = "an array of one text or more, the first being the most urgent"
    order = table.required("order", table.texts("order", allowed), allowed)
    table.close()
    if order is not None and not order:
        table.wrong("order", allowed)
    elif order is not None and len(set(order)) < len(order):
        table.problem("order", "holds a text twice; each stands at one place")
    return PriorityOrder(key=key, order=order) if key is not None and order else None


def _read_budget(table: Table, notes: Notes, trigger_id: str) -> Gate | None:
    """`budget.max_concurrent` as the concurrency it means; the rest of `budget` is kept."""
    budget = table.table("budget")
    if budget is None:
        return None
    limit = budget.integer("max_concurrent", _COUNT, low=1, high=COUNT_LIMIT)
    if any(key != "max_concurrent" for key in budget.values):
        notes.keep(["budget"], trigger_id)
    if limit is None:
        return None
    if table.has("concurrency"):
        budget.problem("max_concurrent", "says what `concurrency.max` says; remove one of them")
        return None
    notes.warnings.append(
        f"{budget.place.field('max_concurrent')}: read as concurrency = {{ max = {limit} }}; "
        "write that instead"
    )
    return Concurrency(max=limit)


def _required_key(table: Table) -> str | None:
    if not table.has("key"):
        table.wrong("key", "a CEL expression")
    return cel_key(table)


def _required_duration(table: Table, key: str) -> int | None:
    if not table.has(key):
        table.wrong(key, 'a positive duration such as "10m"')
    return table.duration_ms(key)


_READERS: Mapping[str, Callable[[Table], Gate | None]] = {
    "batch": _read_batch,
    "debounce": _read_debounce,
    "rate_limit": _read_rate_limit,
    "throttle": _read_throttle,
    "singleton": _read_singleton,
    "concurrency": _read_concurrency,
}
