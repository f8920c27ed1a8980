"""From the way a call ended to the outcome of its attempt, and how Temporal is told of it."""

from __future__ import annotations

import logging

from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from harn_temporal.activities.handler_call import HandlerEnd
from harn_temporal.contracts import AttemptOutcome, DispatchRequest
from harn_temporal.dispatch_records import error_text, verdict
from harn_temporal.workflows.activity_types import ATTEMPT_FAILED

logger = logging.getLogger("harn_temporal.activities")

RED = frozenset({"failed", "timeout", "denied"})
"""Statuses of an attempt that the Web UI shows as a failed activity."""


def outcome_of_end(request: DispatchRequest, attempt: int, end: HandlerEnd) -> AttemptOutcome:
    """What follows from `end` under the retry policy of the binding."""
    if end.pending:
        return AttemptOutcome(
            attempt=attempt,
            status=end.status,
            error=None if end.error is None else error_text(end.error),
            retry_in_ms=end.retry_after_ms,
            remote_task=end.remote_task,
            pending=True,
        )
    outcome = verdict(
        request.binding,
        attempt,
        end.status,
        result=end.result,
        error=end.error,
        error_class=end.error_class,
    ).model_copy(update={"remote_task": end.remote_task})
    if not end.retryable:
        return outcome.model_copy(update={"retry_in_ms": None, "final": "failed"})
    if outcome.retry_in_ms is not None and end.retry_after_ms is not None:
        wait_ms = max(outcome.retry_in_ms, end.retry_after_ms)
        return outcome.model_copy(update={"retry_in_ms": wait_ms})
    return outcome


def told(request: DispatchRequest, outcome: AttemptOutcome) -> AttemptOutcome:
    """`outcome` as an activity's result, or raised where the Web UI is to show it red.

    Benign: what the SDK would log for it is logged here, in brief.
    """
    if outcome.pending or outcome.status not in RED:
        return outcome
    logger.warning(
        "attempt_failed",
        extra={
            "trigger_id": request.binding.trigger_id,
            "event_id": request.event_id,
            "attempt": outcome.attempt,
            "status": outcome.status,
            "error_class": outcome.error_class,
        },
    )
    raise ApplicationError(
        outcome.error or outcome.status,
        outcome,
        type=ATTEMPT_FAILED,
        non_retryable=True,
        category=ApplicationErrorCategory.BENIGN,
    )
