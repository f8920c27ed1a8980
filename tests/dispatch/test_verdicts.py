from __future__ import annotations

import urllib.error
from email.message import Message
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harn_temporal.canonical import PAYLOAD_DEPTH_LIMIT
from harn_temporal.contracts import AttemptOutcome
from harn_temporal.errors import Denied
from harn_temporal.retry import RetryPolicy
from harn_temporal.verdicts import ERROR_LIMIT, error_class_of, error_text, verdict


class StatusError(Exception):
    def __init__(self, **attributes: Any) -> None:
        super().__init__("status")
        for name, value in attributes.items():
            setattr(self, name, value)


@pytest.mark.parametrize(
    ("status", "attempt", "follows"),
    [
        ("success", 1, (None, "succeeded", None)),
        ("failed", 1, (1500, None, "handler_panic")),
        ("failed", 2, (1500, None, "handler_panic")),
        ("failed", 3, (None, "dlq", "handler_panic")),
        ("timeout", 2, (1500, None, "handler_timeout")),
        ("timeout", 3, (None, "dlq", "handler_timeout")),
        ("denied", 1, (None, "failed", "auth_failed")),
        ("waiting", 1, (None, "waiting", None)),
        ("cancelled", 2, (None, "cancelled", None)),
    ],
)
def test_what_follows_an_attempt(make_binding, status, attempt, follows) -> None:
    retry_in_ms, final, error_class = follows
    error = None if status == "success" else "boom"
    assert verdict(make_binding(), attempt, status, error=error) == AttemptOutcome(
        attempt=attempt,
        status=status,
        error=error,
        error_class=error_class,
        retry_in_ms=retry_in_ms,
        final=final,
    )


def test_the_svix_schedule_is_followed_to_its_end(make_binding) -> None:
    binding = make_binding(retry=RetryPolicy())
    outcomes = [verdict(binding, attempt, "failed", error="x") for attempt in range(1, 8)]
    assert [outcome.retry_in_ms for outcome in outcomes] == [
        5_000,
        300_000,
        1_800_000,
        7_200_000,
        18_000_000,
        36_000_000,
        None,
    ]
    assert [outcome.final for outcome in outcomes] == [None] * 6 + ["dlq"]


def test_a_given_class_is_kept(make_binding) -> None:
    outcome = verdict(make_binding(), 3, "failed", error="lost", error_class="unknown")
    assert outcome.error_class == "unknown"


def test_an_ending_without_a_text_still_says_something(make_binding) -> None:
    assert verdict(make_binding(), 1, "timeout").error == "the attempt ended as timeout"


def test_a_result_is_cleaned(make_binding) -> None:
    outcome = verdict(make_binding(), 1, "success", result={"a": ("x\ud800", 2**70)})
    assert outcome.result == {"a": ["x\ufffd", str(2**70)]}
    assert (outcome.status, outcome.error, outcome.final) == ("success", None, "succeeded")


@pytest.mark.parametrize(
    ("result", "where"), [({"a": [float("nan")]}, "$.a[0] is nan"), ({"b": {1, 2}}, "$.b is a set")]
)
def test_a_result_that_is_not_json_fails_the_attempt(make_binding, result, where) -> None:
    outcome = verdict(make_binding(), 1, "success", result=result)
    assert (outcome.status, outcome.result) == ("failed", None)
    assert (outcome.retry_in_ms, outcome.error_class) == (1500, "handler_panic")
    assert outcome.error is not None
    assert outcome.error.startswith(f"the handler returned what JSON cannot hold: {where}, ")


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_a_result_leaves_room_for_the_levels_of_a_record(make_binding) -> None:
    deepest, deeper = nested(PAYLOAD_DEPTH_LIMIT), nested(PAYLOAD_DEPTH_LIMIT + 1)
    assert verdict(make_binding(), 1, "success", result=deepest).result == deepest
    assert verdict(make_binding(), 1, "success", result=deeper).status == "failed"


def test_only_a_success_has_a_result(make_binding) -> None:
    assert verdict(make_binding(), 1, "failed", result={"x": 1}, error="no").result is None


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("connection timed out 503 unauthorized"), "handler_panic"),
        (TimeoutError(), "handler_timeout"),
        (Denied("no"), "auth_failed"),
        (StatusError(response=SimpleNamespace(status_code=503)), "provider_5xx"),
        (StatusError(status_code=500), "provider_5xx"),
        (StatusError(status=599), "provider_5xx"),
        (StatusError(status=600), "handler_panic"),
        (StatusError(status=499), "handler_panic"),
        (StatusError(status_code=401), "auth_failed"),
        (StatusError(response=SimpleNamespace(status_code=403)), "auth_failed"),
        (StatusError(code="503"), "handler_panic"),
        (StatusError(code=True), "handler_panic"),
    ],
)
def test_the_class_of_an_exception_comes_from_its_type(error, expected) -> None:
    assert error_class_of(error) == expected


def test_an_error_of_urllib_is_classed_by_its_code() -> None:
    error = urllib.error.HTTPError("http://x", 502, "Bad Gateway", Message(), None)
    assert error_class_of(error) == "provider_5xx"
    error.close()


def test_a_text_at_the_limit_is_whole_and_one_byte_more_is_cut() -> None:
    exact = "é" * (ERROR_LIMIT // 2)
    assert error_text(exact) == exact
    cut = error_text(exact + "a")
    assert cut == "é" * ((ERROR_LIMIT - 3) // 2) + "…"
    assert len(cut.encode()) == ERROR_LIMIT - 1


def test_a_cut_never_splits_a_character() -> None:
    cut = error_text("a" + "😀" * ERROR_LIMIT)
    assert cut == "a" + "😀" * 2047 + "…"
    assert len(cut.encode()) == 1 + 2047 * 4 + 3


def test_lone_surrogates_are_replaced_and_nul_is_kept() -> None:
    assert error_text("a\x00b\ud800c\udfff") == "a\x00b\ufffdc\ufffd"


@given(st.text(st.characters(exclude_categories=()), max_size=200), st.integers(1, 2000))
def test_any_text_is_utf8_within_the_limit(text, times) -> None:
    assert len(error_text(text * times).encode()) <= ERROR_LIMIT
