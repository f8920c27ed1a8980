from __future__ import annotations

import pytest
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    RetryState,
    TimeoutType,
)
from temporalio.exceptions import TimeoutError as TemporalTimeoutError

from harn_temporal.contracts import AttemptOutcome
from harn_temporal.workflows.attempt_fate import CutShort, Ended, Lost, StoreDown, fate_of

OUTCOME = AttemptOutcome(attempt=2, status="failed", error="no", retry_in_ms=5)


def timed_out(kind):
    return TemporalTimeoutError("late", type=kind, last_heartbeat_details=[])


@pytest.mark.parametrize(
    ("cause", "fate"),
    [
        (ApplicationError("no", OUTCOME.model_dump(), type="AttemptFailed"), Ended(OUTCOME)),
        (ApplicationError("cancelled", type="WorkerShutdown"), CutShort()),
        (ApplicationError("away", type="StoreUnavailable"), StoreDown()),
        (ApplicationError("odd", type="TypeError"), Lost("failed", "TypeError: odd")),
        (ApplicationError("AttemptFailed"), Lost("failed", "error: AttemptFailed")),
        (CancelledError("Cancelled"), Lost("cancelled", "cancelled")),
        (
            timed_out(TimeoutType.HEARTBEAT),
            Lost("failed", "the worker that ran this attempt stopped answering"),
        ),
        (
            timed_out(TimeoutType.START_TO_CLOSE),
            Lost("timeout", "the attempt did not end within its time"),
        ),
    ],
)
def test_fate(cause, fate):
    error = ActivityError(
        "Activity task failed",
        scheduled_event_id=5,
        started_event_id=6,
        identity="worker",
        activity_type="run_attempt",
        activity_id="1",
        retry_state=RetryState.MAXIMUM_ATTEMPTS_REACHED,
    )
    error.__cause__ = cause
    assert fate_of(error) == fate
