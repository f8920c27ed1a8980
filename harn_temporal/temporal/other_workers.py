"""Whether other processes work on a task queue, as Temporal tells it."""

from __future__ import annotations

import time
from datetime import timedelta

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError

TIMEOUT = timedelta(seconds=5)
ASK_AGAIN_S = 10.0


class OtherWorkers:
    """Asked before a dispatch is started eagerly, in the process that starts it.

    That saves a round trip, but keeps work from processes that wait for it. Temporal goes on to
    list a process for up to five minutes after it has ended.
    """

    def __init__(self, client: Client, tasks: str) -> None:
        self._client = client
        self._tasks = tasks
        self._known = True
        self._ask_at = 0.0

    async def there(self) -> bool:
        """As of the last ten seconds; also true where Temporal does not say."""
        now = time.monotonic()
        if now >= self._ask_at:
            self._ask_at = now + ASK_AGAIN_S
            self._known = await self._ask()
        return self._known

    async def _ask(self) -> bool:
        try:
            found = await self._client.workflow_service.describe_task_queue(
                DescribeTaskQueueRequest(
                    namespace=self._client.namespace,
                    task_queue=TaskQueue(name=self._tasks),
                    task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
                ),
                timeout=TIMEOUT,
            )
        except RPCError:
            return True
        return any(each.identity != self._client.identity for each in found.pollers)
