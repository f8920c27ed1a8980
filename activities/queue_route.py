"""An attempt that appends a job to a worker queue."""

from __future__ import annotations

from harn_temporal.activities.attempt_end import outcome_of_end
from harn_temporal.activities.handler_call import HandlerEnd
from harn_temporal.contracts import AttemptOutcome, DispatchRequest
from harn_temporal.errors import UsageError
from harn_temporal.eventlog.log import Transaction
from harn_temporal.queue.routing import enqueue_job


def enqueued(tx: Transaction, request: DispatchRequest, attempt: int) -> AttemptOutcome:
    """The outcome with the receipt; a name that no queue can have fails, and is not retried."""
    try:
        receipt = enqueue_job(tx, request)
    except UsageError as error:  # raised before anything is appended
        end = HandlerEnd("failed", error=str(error), error_class="unknown", retryable=False)
    else:
        end = HandlerEnd("success", result=receipt.model_dump())
    return outcome_of_end(request, attempt, end)
