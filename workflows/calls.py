"""How a dispatch has its activities executed: their retries, and what a cancellation does."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import FailureError

from harn_temporal.workflows.activity_types import ActivityType

T = TypeVar("T")
InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")

FIRST_STORE_PAUSE = timedelta(seconds=1)
LONGEST_STORE_PAUSE = timedelta(seconds=30)

RECORDING_TIMEOUT = timedelta(minutes=1)
LOCAL_TIMEOUT = timedelta(seconds=5)

UNTIL_RECORDED = RetryPolicy(
    initial_interval=FIRST_STORE_PAUSE, backoff_coefficient=2, maximum_interval=LONGEST_STORE_PAUSE
)
"""For activities that only append or evaluate: tried again until the store takes it."""

A_FEW_TIMES = RetryPolicy(maximum_attempts=5, maximum_interval=timedelta(seconds=30))
"""For asking an agent to cancel a task: it may be away just now, and that is its affair."""

ONCE = RetryPolicy(maximum_attempts=1)
"""For an attempt, whose failures are decided on in the open, and for a first try."""


async def call(
    activity: ActivityType[InputT, OutputT],
    message: InputT,
    *,
    start_to_close: timedelta,
    retry: RetryPolicy,
    summary: str,
    heartbeat: timedelta | None = None,
    task_queue: str | None = None,
) -> OutputT:
    """Time on the queue is not limited: without a worker a dispatch waits for one.

    A cancelled activity is waited for, since it may still write how it ended.
    """
    output: OutputT = await workflow.execute_activity(
        activity.name,
        message,
        result_type=activity.output,
        task_queue=task_queue,
        start_to_close_timeout=start_to_close,
        heartbeat_timeout=heartbeat,
        retry_policy=retry,
        cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        summary=summary,
    )
    return output


async def record(
    activity: ActivityType[InputT, OutputT],
    message: InputT,
    summary: str,
    task_queue: str | None = None,
) -> OutputT:
    """Have something recorded, cancelled or not.

    First as a local activity, which does not wait until a handler gives up its slot; where the
    store is away as a normal one, which waits for as long as that takes.
    """
    try:
        output: OutputT = await shielded(
            workflow.execute_local_activity(
                activity.name,
                message,
                result_type=activity.output,
                schedule_to_close_timeout=LOCAL_TIMEOUT,
                retry_policy=ONCE,
            )
        )
    except FailureError:  # of a local activity it is the bare error of its last try
        return await shielded(
            call(
                activity,
                message,
                start_to_close=RECORDING_TIMEOUT,
                retry=UNTIL_RECORDED,
                summary=summary,
                task_queue=task_queue,
            )
        )
    return output


def cancel_requested() -> bool:
    """Also true where an activity that ended in the same moment swallowed the cancellation."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def shielded(work: Coroutine[Any, Any, T]) -> T:
    return await asyncio.shield(asyncio.ensure_future(work))
