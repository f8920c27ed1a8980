from __future__ import annotations

import pytest

from harn_temporal.scheduler import Policy, read_policy


def test_an_empty_environment_gives_the_defaults():
    policy, warnings = read_policy({})
    assert policy == Policy()
    assert warnings == ()
    assert policy.strategy == "fifo"
    assert policy.starvation_age_ms == 300_000


def test_every_variable_is_read():
    policy, warnings = read_policy(
        {
            "HARN_SCHEDULER_STRATEGY": "DRR",
            "HARN_SCHEDULER_FAIRNESS_KEY": "tenant-and-binding",
            "HARN_SCHEDULER_QUANTUM": "2",
            "HARN_SCHEDULER_STARVATION_AGE_MS": "0",
            "HARN_SCHEDULER_MAX_CONCURRENT_PER_KEY": "7",
            "HARN_SCHEDULER_DEFAULT_WEIGHT": "4",
            "HARN_SCHEDULER_WEIGHTS": "a:3, urn:x:y:12 ,",
        }
    )
    assert warnings == ()
    assert policy == Policy(
        strategy="drr",
        fairness_key="tenant-and-binding",
        quantum=2,
        starvation_age_ms=0,
        max_concurrent_per_key=7,
        default_weight=4,
        weights={"a": 3, "urn:x:y": 12},
    )
    assert policy.grant("urn:x:y") == 24
    assert policy.grant("else") == 8


@pytest.mark.parametrize("name", ["deficit-round-robin", "fair-share", "drr"])
def test_fair_share_has_three_names(name):
    assert read_policy({"HARN_SCHEDULER_STRATEGY": name})[0].strategy == "drr"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("STRATEGY", "lottery"),
        ("FAIRNESS_KEY", "team"),
        ("QUANTUM", "0"),
        ("QUANTUM", "many"),
        ("STARVATION_AGE_MS", "-1"),
        ("STARVATION_AGE_MS", "5m"),
        ("MAX_CONCURRENT_PER_KEY", "1.5"),
        ("DEFAULT_WEIGHT", "0"),
        ("DEFAULT_WEIGHT", "9" * 5000),
        ("WEIGHTS", "a"),
        ("WEIGHTS", "a:0"),
        ("WEIGHTS", ":3"),
        ("WEIGHTS", "a:x"),
    ],
)
def test_what_cannot_be_read_counts_as_unset_and_is_named(name, value):
    policy, warnings = read_policy({f"HARN_SCHEDULER_{name}": value})
    assert policy == Policy()
    assert len(warnings) == 1
    assert f"HARN_SCHEDULER_{name}" in warnings[0]
    assert value in warnings[0]


def test_a_bad_weight_leaves_the_others():
    policy, warnings = read_policy({"HARN_SCHEDULER_WEIGHTS": "a:3,b:none,c:2"})
    assert policy.weights == {"a": 3, "c": 2}
    assert len(warnings) == 1


def test_the_keys_of_a_job():
    def key(dimension, tenant="acme"):
        return Policy(fairness_key=dimension).key_of(tenant, "review", "review@v3")

    assert key("tenant") == "acme"
    assert key("tenant", None) == "_no_tenant"
    assert key("binding") == "review@v3"
    assert key("trigger-id") == "review"
    assert key("tenant-and-binding") == "acme|review@v3"
    assert key("tenant-and-binding", None) == "_no_tenant|review@v3"


def test_the_policy_as_json():
    assert Policy().to_json()["strategy"] == {"kind": "fifo"}
    fair = Policy(strategy="drr", weights={"tenant-a": 3, "tenant-b": 1})
    assert fair.to_json() == {
        "strategy": {
            "kind": "deficit-round-robin",
            "quantum": 1,
            "starvation_age_ms": 300_000,
        },
        "fairness_key": "tenant",
        "weights": {"tenant-a": 3, "tenant-b": 1},
        "default_weight": 1,
        "max_concurrent_per_key": 0,
    }
    assert (
        Policy(strategy="drr", starvation_age_ms=0).to_json()["strategy"]["starvation_age_ms"]
        is None
    )
