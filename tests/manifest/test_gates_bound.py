"""Gates in the bindings of a manifest."""

from __future__ import annotations

from harn_temporal.gates.models import Batch, Concurrency, Gates, PriorityOrder, Throttle


def test_a_binding_carries_the_gates_of_its_trigger(one):
    (binding,) = one(
        'concurrency = { key = "event.headers.tenant", max = 10 }\n'
        'throttle = { period = "1m", max = 30 }\n'
        'priority = { key = "event.id", order = ["a"] }\n'
    ).bindings
    assert binding.gates == Gates(
        concurrency=Concurrency(key="event.headers.tenant", max=10),
        throttle=Throttle(period_ms=60_000, max=30),
        priority=PriorityOrder(key="event.id", order=("a",)),
    )
    assert binding.priority == "normal"
    assert [kind for kind, _ in binding.gates.in_order()] == ["throttle", "concurrency"]


def test_a_binding_without_gates_has_none(one):
    (binding,) = one("").bindings
    assert binding.gates is None


def test_gates_are_part_of_the_fingerprint(one):
    texts = [
        "",
        "batch = { size = 3, timeout = '1m' }\n",
        "batch = { size = 4, timeout = '1m' }\n",
        "singleton = {}\n",
        "singleton = { key = 'event.id' }\n",
        "concurrency = { max = 1 }\n",
    ]
    found = [one(text).bindings[0] for text in texts]
    assert len({binding.fingerprint for binding in found}) == len(texts)
    assert found[1].gates == Gates(batch=Batch(size=3, timeout_ms=60_000))
