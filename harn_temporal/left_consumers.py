"""Consumers whose process is gone: what they left is ended by whoever works by then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import Worker

from harn_temporal.errors import StoreError, UnavailableError
from harn_temporal.eventlog.log import EventLog
from harn_temporal.naming import consumer_queue_prefix
from harn_temporal.queue.presence import is_present

logger = logging.getLogger("harn_temporal.left_consumers")

LOOK_S = 30.0
ENDED_LOOK_S = 1.0
"""Between two looks at whether what a consumer left has ended."""


class LeftConsumers:
    """Works on the task queues of consumers that are gone, until nothing is open there.

    Such a consumer finds its claims lost, ends the jobs that others have by now, and finishes those
    that nobody took; it claims no others. `workers_of` gives the workers of a task queue.
    """

    def __init__(
        self,
        client: Client,
        log: EventLog,
        package: str,
        workers_of: Callable[[str], Sequence[Worker]],
    ) -> None:
        self._client = client
        self._log = log
        self._prefix = consumer_queue_prefix(log.store_id, package)
        self._workers_of = workers_of

    async def run(self) -> None:
        """Look for such consumers now and then, until cancelled. What fails is tried next time."""
        while True:
            try:
                for tasks in await self.left():
                    await self._end(tasks)
            except (RPCError, UnavailableError, StoreError) as error:
                logger.warning("left_consumers_not_ended", extra={"error": str(error)})
            await asyncio.sleep(LOOK_S)

    async def left(self) -> list[str]:
        """The task queues of consumers that are gone, on which a workflow is open."""
        queues = await self._open_queues()
        return await self._log.query(
            lambda reader: [
                each for each in queues if not is_present(reader, each.removeprefix(self._prefix))
            ]
        )

    async def _open_queues(self) -> list[str]:
        """What Temporal lists may be a second old. Then there is a look more, or one too many."""
        wanted = f'ExecutionStatus = "Running" AND TaskQueue STARTS_WITH "{self._prefix}"'
        return sorted({each.task_queue async for each in self._client.list_workflows(wanted)})

    async def _end(self, tasks: str) -> None:
        """Work there until it has ended, or a process of the consumer's id is there again."""
        logger.info("left_consumer_taken_up", extra={"task_queue": tasks})
        running = [asyncio.create_task(each.run()) for each in self._workers_of(tasks)]
        try:
            while tasks in await self.left():  # noqa: ASYNC110 - Temporal tells no event
                await asyncio.sleep(ENDED_LOOK_S)
        finally:
            for worker in running:
                worker.cancel()  # an orderly shutdown
            await asyncio.gather(*running, return_exceptions=True)
