"""Consumers of worker queues: their workflows, and the worker that selects and settles."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker

from harn_temporal.activities.queue_jobs import QueueActivities
from harn_temporal.bindings import Binding
from harn_temporal.consume_contracts import (
    ConsumeMode,
    ConsumeRequest,
    ConsumeResult,
    ConsumeState,
    EndedChild,
)
from harn_temporal.contracts import DispatchOutcome
from harn_temporal.errors import (
    StoreError,
    TemporalUnavailableError,
    UnavailableError,
    UsageError,
)
from harn_temporal.eventlog.log import EventLog, Reader, Transaction
from harn_temporal.eventlog.topics import claims_topic, responses_topic
from harn_temporal.naming import consume_queue, consumer_queue, consumer_workflow_id
from harn_temporal.queue.models import DEFAULT_TTL_MS
from harn_temporal.queue.names import checked_queue
from harn_temporal.queue.presence import CONFIRM_S, confirm, withdraw
from harn_temporal.scheduler import read_policy
from harn_temporal.scheduler_figures import SchedulerFigures
from harn_temporal.workflows.consume import ConsumeWorkflow

logger = logging.getLogger("harn_temporal.consumers")

ConsumerHandle = WorkflowHandle[ConsumeWorkflow, ConsumeResult]

SELECTIONS_AT_ONCE = 200
"""Selections and waits: a consumer needs two at a time, and most of them only wait."""

STOPPED = "the consumer's process was stopped"
RPC_TIMEOUT = timedelta(seconds=10)
START_AGAIN_S = 5.0


@dataclass(frozen=True)
class ConsumerOptions:
    """How a queue is consumed. Times are milliseconds."""

    queue: str
    consumer_id: str
    mode: ConsumeMode
    max_concurrent: int
    ttl_ms: int = DEFAULT_TTL_MS
    limit: int | None = None
    inline: bool = False
    max_deliveries: int = 0
    history_limit: int | None = None
    """Events after which the workflow continues as new; None for what is usual."""


def selection_worker(
    client: Client, tasks: str, activities: QueueActivities, heartbeat_throttle: timedelta
) -> Worker:
    """Selects and settles for the consumers of a task queue, with slots of its own."""
    return Worker(
        client,
        task_queue=consume_queue(tasks),
        activities=[activities.select_jobs, activities.watch_queue, activities.check_children],
        max_concurrent_activities=SELECTIONS_AT_ONCE,
        max_heartbeat_throttle_interval=heartbeat_throttle,
        default_heartbeat_throttle_interval=heartbeat_throttle,
    )


def queue_activities(
    client: Client, log: EventLog, bindings: Mapping[str, Binding], figures: SchedulerFigures
) -> QueueActivities:
    policy, warnings = read_policy(os.environ)
    for warning in warnings:
        logger.warning("scheduler_policy_ignored", extra={"problem": warning})

    async def describe(workflow_id: str) -> EndedChild | None:
        return await _ended(client, workflow_id)

    return QueueActivities(log, lambda: bindings, policy, figures, describe)


async def start_consumer(
    client: Client,
    log: EventLog,
    package: str,
    options: ConsumerOptions,
    *,
    search_attributes: bool,
    heartbeat_timeout_ms: int,
) -> ConsumerHandle:
    """Start the consumer's workflow, or adopt the one of this id that is open.

    It needs workers of the task queue of its id. Raises UsageError for a queue's name or an id
    that is too long, and TemporalUnavailableError.
    """

    def heads(reader: Reader) -> tuple[int, int]:
        checked_queue(reader, options.queue)
        return reader.head(claims_topic(options.queue)), reader.head(responses_topic(options.queue))

    claims_after, responses_after = await log.query(heads)
    tasks = consumer_queue(log.store_id, package, options.consumer_id)
    request = ConsumeRequest(
        store_id=log.store_id,
        package=package,
        queue=options.queue,
        consumer_id=options.consumer_id,
        mode=options.mode,
        consume_queue=consume_queue(tasks),
        ttl_ms=options.ttl_ms,
        max_concurrent=options.max_concurrent,
        limit=options.limit,
        max_deliveries=options.max_deliveries,
        inline=options.inline,
        search_attributes=search_attributes,
        heartbeat_timeout_ms=heartbeat_timeout_ms,
        claims_after=claims_after,
        responses_after=responses_after,
    )
    if options.history_limit is not None:
        request = request.model_copy(update={"history_limit": options.history_limit})
    try:
        return await client.start_workflow(
            ConsumeWorkflow.run,
            request,
            id=consumer_workflow_id(log.store_id, package, options.queue, options.consumer_id),
            task_queue=tasks,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            static_summary=f"{options.mode} queue {options.queue}"[:200],
        )
    except RPCError as error:
        raise TemporalUnavailableError(
            f"the Temporal service at {client.service_client.config.target_host} does not take "
            f"the consumer of queue {options.queue}: {error.message}"
        ) from error


async def state_of(handle: ConsumerHandle, options: ConsumerOptions) -> ConsumeState:
    """Of a consumer that was started or adopted; needs a worker. Raises UsageError."""
    state: ConsumeState = await handle.query("state", result_type=ConsumeState)
    if state.mode != options.mode:
        raise UsageError(
            f"the consumer {options.consumer_id!r} of queue {options.queue!r} is open and in mode "
            f"{state.mode}; choose another --consumer-id"
        )
    return state


@asynccontextmanager
async def serving(
    client: Client,
    log: EventLog,
    package: str,
    consumers: Sequence[ConsumerOptions],
    *,
    grace: timedelta,
    search_attributes: bool,
    heartbeat_timeout_ms: int,
) -> AsyncIterator[None]:
    """Serve queues for as long as the context is open, while workers of the consumers run.

    At its end each consumer gives back what it has not begun, and gets the grace period for the
    rest. What does not end in it is adopted by the next process of its id, or else ended by any
    worker of the package.
    """
    if not consumers:
        yield
        return
    async with confirmed(log, [each.consumer_id for each in consumers]):
        starts = [
            partial(
                start_consumer,
                client,
                log,
                package,
                each,
                search_attributes=search_attributes,
                heartbeat_timeout_ms=heartbeat_timeout_ms,
            )
            for each in consumers
        ]
        handles = [await start() for start in starts]
        keeping = [
            asyncio.create_task(_keep_open(handle, start))
            for handle, start in zip(handles, starts, strict=True)
        ]
        try:
            yield
        finally:
            for task in keeping:
                task.cancel()
            await asyncio.gather(*keeping, return_exceptions=True)
            await asyncio.gather(*(stop_consumer(client, each.id, grace) for each in handles))


async def _keep_open(
    handle: ConsumerHandle, start: Callable[[], Awaitable[ConsumerHandle]]
) -> None:
    """Start a consumer anew when it ends: so does one that was told to stop before it was adopted.

    One that was cancelled or terminated stays ended; it was somebody's wish.
    """
    while True:
        try:
            await handle.result()
            handle = await start()
            logger.info("consumer_started_anew", extra={"id": handle.id})
        except WorkflowFailureError as error:
            logger.warning("consumer_ended", extra={"id": handle.id, "error": str(error.cause)})
            return
        except (RPCError, UnavailableError, StoreError) as error:
            logger.warning("consumer_not_started", extra={"id": handle.id, "error": str(error)})
            await asyncio.sleep(START_AGAIN_S)


@asynccontextmanager
async def confirmed(log: EventLog, consumer_ids: Sequence[str]) -> AsyncIterator[None]:
    """Say that the process of consumers is there, for as long as the context is open."""
    await _tell(log, confirm, consumer_ids)
    confirming = asyncio.create_task(_keep_confirming(log, consumer_ids))
    try:
        yield
    finally:
        confirming.cancel()
        await asyncio.gather(confirming, return_exceptions=True)
        try:
            await _tell(log, withdraw, consumer_ids)
        except (UnavailableError, StoreError) as error:
            logger.warning("presence_not_withdrawn", extra={"error": str(error)})


async def stop_consumer(client: Client, workflow_id: str, grace: timedelta) -> None:
    """Tell a consumer to stop, and wait for its end, though no longer than the grace period."""
    handle: ConsumerHandle = client.get_workflow_handle(workflow_id)
    try:
        async with asyncio.timeout(grace.total_seconds()):
            await handle.signal(ConsumeWorkflow.stop, STOPPED)
            await handle.result()
    except (TimeoutError, RPCError, WorkflowFailureError) as error:
        logger.warning("consumer_left_open", extra={"id": handle.id, "error": str(error)})


async def _tell(
    log: EventLog, what: Callable[[Transaction, str], None], consumer_ids: Sequence[str]
) -> None:
    def work(tx: Transaction) -> None:
        for each in consumer_ids:
            what(tx, each)

    await log.transact(work)


async def _keep_confirming(log: EventLog, consumer_ids: Sequence[str]) -> None:
    while True:
        await asyncio.sleep(CONFIRM_S)
        try:
            await _tell(log, confirm, consumer_ids)
        except (UnavailableError, StoreError) as error:
            logger.warning("presence_not_confirmed", extra={"error": str(error)})


async def _ended(client: Client, workflow_id: str) -> EndedChild | None:
    handle = client.get_workflow_handle(workflow_id, result_type=DispatchOutcome)
    try:
        found = await handle.describe(rpc_timeout=RPC_TIMEOUT)
        if found.status == WorkflowExecutionStatus.RUNNING:
            return None
        outcome: DispatchOutcome = await handle.result(rpc_timeout=RPC_TIMEOUT)
    except WorkflowFailureError as error:
        text = f"the workflow {workflow_id} was ended from outside: {error.cause}"
        return EndedChild(workflow_id=workflow_id, error=text)
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return EndedChild(workflow_id=workflow_id, error=f"the workflow {workflow_id} is gone")
        raise
    return EndedChild(workflow_id=workflow_id, outcome=outcome)
