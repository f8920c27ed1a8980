"""Keys: what they are made of, and that no two are taken for one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harn_temporal.bindings import Binding, HandlerTarget
from harn_temporal.errors import ExpressionError
from harn_temporal.eventlog.topics import is_topic
from harn_temporal.gates.identity import KEY_LIMIT, GateKey, limited
from harn_temporal.gates.keys import gate_keys, waiting_rank
from harn_temporal.gates.models import (
    Batch,
    Concurrency,
    Debounce,
    Gates,
    PriorityOrder,
    RateLimit,
    Singleton,
    Throttle,
)


def binding(**gates):
    return Binding(
        package="demo",
        trigger_id="t",
        version=3,
        kind="webhook",
        provider="github",
        handler=HandlerTarget(kind="local", uri="run"),
        fingerprint="f",
        gates=Gates(**gates),
    )


EVENT = {"id": "e", "headers": {"tenant": "acme", "n": "7"}, "provider_payload": {"raw": {"n": 7}}}


def test_gates_come_in_their_order_with_their_keys():
    found = gate_keys(
        binding(
            concurrency=Concurrency(max=1, key="event.headers.tenant"),
            singleton=Singleton(),
            throttle=Throttle(period_ms=1, max=1, key="event.provider_payload.raw.n"),
            rate_limit=RateLimit(period_ms=1, max=1, key="event.headers.missing"),
            debounce=Debounce(key="event.headers.tenant + ':' + event.id", period_ms=1),
        ),
        EVENT,
    )
    assert [(each.kind, each.name) for each in found] == [
        ("debounce", "t@v3:acme:e"),
        ("rate_limit", "t@v3:null"),
        ("throttle", "t@v3:7"),
        ("singleton", "t@v3:_global"),
        ("concurrency", "t@v3:acme"),
    ]
    assert gate_keys(binding(batch=Batch(size=2, timeout_ms=1)), EVENT)[0].keyed is False
    assert gate_keys(binding(), EVENT) == []


def test_a_key_that_cannot_be_computed_is_an_error():
    with pytest.raises(ExpressionError):
        gate_keys(binding(singleton=Singleton(key="1 + event.id")), EVENT)


@pytest.mark.parametrize(("tenant", "rank"), [("gold", 0), ("silver", 1), ("x", 2), (None, 2)])
def test_waiters_rank_by_their_place_in_the_order(tenant, rank):
    order = PriorityOrder(key="event.headers.tenant", order=("gold", "silver"))
    headers = {} if tenant is None else {"tenant": tenant}
    assert waiting_rank(binding(priority=order), {"headers": headers}) == rank
    assert waiting_rank(binding(), {"headers": headers}) == 0


def test_a_binding_without_gates_is_as_it_was():
    plain = binding().model_copy(update={"gates": None})
    assert Binding.model_validate(plain.model_dump(exclude={"gates"})) == plain


def key(value, binding_key="t@v1", *, keyed=True):
    return GateKey(kind="singleton", binding_key=binding_key, keyed=keyed, value=value)


LOOKALIKES = [
    key("b:c", "a@v1"),
    key("c", "a@v1:b"),
    key(None, "a@v1", keyed=False),
    key("_global", "a@v1"),
    key(None),
    key(None, keyed=False),
    key("null"),
    key(7),
    key("7"),
    key(7.5),
    key(True),
    key("true"),
    key("a b"),
    key("a_b"),
    key("a/b"),
    key(""),
    key(["a"]),
    key('["a"]'),
    key("\u0430"),
    key("a"),
    key("x" * 10_000),
    key("x" * 10_001),
    key("\u6f22" * 10_000),
]


def test_keys_that_look_alike_are_apart():
    assert len({each.gate_id for each in LOOKALIKES}) == len(LOOKALIKES)
    assert all(is_topic(each.topic) and len(each.topic) < 160 for each in LOOKALIKES)


async def test_gates_that_share_a_topic_share_nothing_else(desk):
    only = Singleton()
    values = ["a b", "a_b", "a/b", None, "null", 7, "7", "x" * 10_000, "x" * 10_001, "\u6f22"]
    topics = {desk.key(only, value).topic for value in values}
    assert len(topics) < len(values)
    assert [await desk.says(only, f"{n}", value) for n, value in enumerate(values)] == [True] * 10
    assert [await desk.says(only, f"z{n}", value) for n, value in enumerate(values)] == [False] * 10
    assert await desk.release("0") == []
    assert await desk.says(only, "new", "a b") is True
    assert await desk.says(only, "newer", "a_b") is False


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(st.lists(st.tuples(st.text(max_size=10), JSON), min_size=2, max_size=5))
def test_an_id_is_the_same_for_the_same_and_no_other(parts):
    made = [key(limited(value), name) for name, value in parts]
    again = [GateKey.model_validate_json(each.model_dump_json()) for each in made]
    assert [each.gate_id for each in again] == [each.gate_id for each in made]
    distinct = {json.dumps([name, value], sort_keys=True) for name, value in parts}
    assert len({each.gate_id for each in made}) == len(distinct)
    assert all(is_topic(each.topic) for each in made)


def test_a_key_of_megabytes_does_not_stand_in_every_record():
    one, other = limited("x" * 2_000_000), limited("x" * 1_999_999 + "y")
    assert isinstance(one, str)
    assert isinstance(other, str)
    assert len(one) == len(other) == KEY_LIMIT
    assert key(one).gate_id != key(other).gate_id
    assert limited("x" * KEY_LIMIT) == "x" * KEY_LIMIT
