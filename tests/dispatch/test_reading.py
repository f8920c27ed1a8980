from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harn_temporal.canonical import decode, encode
from harn_temporal.contracts import AttemptOutcome
from harn_temporal.dispatch_records import (
    attempt_history,
    cancelled,
    ended,
    outcome_of,
    started,
    verdict,
)
from harn_temporal.errors import StoreError
from harn_temporal.eventlog.records import Record

TEXT = st.text(st.characters(exclude_categories=()), max_size=30)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
STATUSES = st.sampled_from(["success", "failed", "timeout", "denied", "waiting", "cancelled"])
ATTEMPTS = st.integers(1, 3)
CLASSES = st.sampled_from(["provider_5xx", "handler_panic", "auth_failed", "unknown"])
EVERY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def end(request, outcome: AttemptOutcome) -> Any:
    return ended(request, outcome, started_at_ms=1, now_ms=2, workflow_id="w")


@EVERY
@given(ended_as=st.tuples(STATUSES, ATTEMPTS, VALUES, st.none() | TEXT, st.none() | CLASSES))
def test_an_outcome_is_read_back_as_it_was_written(make_request, stored, ended_as) -> None:
    request = make_request()
    status, attempt, result, error, error_class = ended_as
    outcome = verdict(
        request.binding,
        attempt,
        status,
        result=result,
        error=error,
        error_class=error_class,
    )
    assert outcome_of(stored(end(request, outcome))) == outcome


@EVERY
@given(ended_as=st.tuples(STATUSES, ATTEMPTS, VALUES, TEXT), header=TEXT, dedupe_key=TEXT)
def test_whatever_came_in_can_be_written(make_request, ended_as, header, dedupe_key) -> None:
    status, attempt, result, error = ended_as
    request = make_request(
        kind=header + "k",
        headers={header: header},
        dedupe_key=dedupe_key,
        provider_payload={"provider": "github", "event": "x", "raw": {header: [header]}},
    )
    outcome = verdict(request.binding, attempt, status, result=result, error=error)
    for append in end(request, outcome):
        assert decode(encode(append.payload)) == append.payload
        assert decode(encode(dict(append.headers))) == dict(append.headers)


def test_nul_unicode_and_lone_surrogates_pass_through_a_failure(make_request, stored) -> None:
    request = make_request(kind="a\x00é\ud83d", headers={"x\udc00": "\ud800\x00"})
    outcome = verdict(request.binding, 1, "failed", error="\x00é\ud800😀")
    batch = end(request, outcome)
    assert batch[0].headers["kind"] == "a\x00é\ufffd"
    assert outcome_of(stored(batch)).error == "\x00é\ufffd😀"


def test_the_end_of_a_dispatch_that_was_cancelled_between_attempts(make_request, stored) -> None:
    batch = cancelled(make_request(), 2, error="by ada", workflow_id="w", now_ms=1)
    assert outcome_of(stored(batch)) == AttemptOutcome(
        attempt=3, status="cancelled", error="by ada", final="cancelled"
    )


def test_records_without_an_outcome_are_refused(make_request, stored) -> None:
    batch = started(make_request(), 2, workflow_id="w", now_ms=1)
    with pytest.raises(StoreError, match=r"dispatch_started \(trigger\.outbox\)"):
        outcome_of(stored(batch))
    with pytest.raises(StoreError, match="found: none"):
        outcome_of([])


def test_a_status_of_a_newer_version_is_refused(make_request, stored) -> None:
    outcome = verdict(make_request().binding, 1, "success")
    records = [
        Record(
            record.topic,
            record.event_id,
            record.kind,
            record.raw.replace(b'"outcome":"success"', b'"outcome":"postponed"'),
            record.headers,
            record.occurred_at_ms,
        )
        for record in stored(end(make_request(), outcome))
    ]
    with pytest.raises(StoreError, match=r"says 'postponed' where one of success, failed"):
        outcome_of(records)


def test_the_history_is_of_one_dispatch_before_an_attempt(
    make_request, make_binding, stored
) -> None:
    request = make_request()
    other = make_request(make_binding(version=3))
    batch = [
        append
        for attempt in (2, 1, 3)
        for append in end(request, verdict(request.binding, attempt, "failed", error="x"))
    ]
    batch += end(other, verdict(other.binding, 1, "timeout", error="y"))
    batch += end(request, verdict(request.binding, 1, "timeout", error="twice"))
    found = attempt_history(
        stored(batch), binding_key="new-issue@v2", event_id="trigger_evt_1", before=3
    )
    assert [(row["attempt"], row["outcome"]) for row in found] == [(1, "failed"), (2, "failed")]
