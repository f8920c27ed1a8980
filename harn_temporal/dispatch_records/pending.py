"""The record of a hop whose agent goes on working after it has answered."""

from __future__ import annotations

from harn_temporal import action_graph
from harn_temporal.contracts import DispatchRequest, RemoteTask
from harn_temporal.dispatch_records.common import attempt_context, graph_record
from harn_temporal.eventlog.records import Append


def pending(
    request: DispatchRequest, attempt: int, task: RemoteTask, *, now_ms: int
) -> list[Append]:
    """What is appended when an attempt goes on as a task, for the key `pending_key`."""
    return [
        graph_record(
            request,
            (action_graph.pending_part(request, attempt, task), []),
            now_ms=now_ms,
            context=attempt_context(request, attempt, task_id=task.task_id, state=task.state),
        )
    ]
