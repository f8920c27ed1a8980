"""Workflows that run in the field go on under today's code."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from harn_temporal.contracts import DispatchOutcome, DispatchRequest, DispatchState
from harn_temporal.temporal.converter import data_converter
from harn_temporal.temporal.sandbox import workflow_runner
from harn_temporal.workflows.consume import ConsumeWorkflow
from harn_temporal.workflows.dispatch import DispatchWorkflow
from harn_temporal.workflows.dispatch_steps import Dispatch
from harn_temporal.workflows.pump import PumpWorkflow

HISTORIES = sorted(Path(__file__).with_name("histories").glob("*.json"))


def history(name: str) -> WorkflowHistory:
    path = Path(__file__).with_name("histories") / f"{name}.json"
    return WorkflowHistory.from_json(f"recorded/{name}", path.read_text())


def replayer(*workflows: type) -> Replayer:
    runner = workflow_runner(strict=True)
    return Replayer(workflows=workflows, workflow_runner=runner, data_converter=data_converter)


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_a_recorded_history_replays(path):
    recorded = WorkflowHistory.from_json(f"recorded/{path.stem}", path.read_text())
    await replayer(DispatchWorkflow, PumpWorkflow, ConsumeWorkflow).replay_workflow(recorded)


def test_every_workflow_has_a_history():
    assert {path.stem.split("_")[0] for path in HISTORIES} == {"dispatch", "pump", "consume"}
    assert {"dispatch_success", "dispatch_retries"} <= {path.stem for path in HISTORIES}
    assert any(path.stem.startswith("dispatch_cancelled") for path in HISTORIES)


def test_one_was_recorded_that_is_cancelled_while_its_predicate_runs():
    events = [event.event_type for event in history("dispatch_cancelled_predicate").events]
    assert events.count(EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED) == 1
    assert events.count(EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED) == 1
    assert events[-1] == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED


def test_a_consumer_was_recorded_that_continued_as_new():
    events = [event.event_type for event in history("consume_continued").events]
    assert events[-1] == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW
    assert EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED in events
    inline = [event.event_type for event in history("consume_inline").events]
    assert inline.count(EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED) == 1


@workflow.defn(name="DispatchWorkflow", sandboxed=False)
class HastyDispatch:
    """As the real one, but for a pause that no recorded dispatch has made."""

    @workflow.init
    def __init__(self, request: DispatchRequest) -> None:
        self._dispatch = Dispatch(request, dispatch_id=workflow.info().workflow_id)

    @workflow.run
    async def run(self, request: DispatchRequest) -> DispatchOutcome:
        await workflow.sleep(timedelta(seconds=1))
        return await self._dispatch.run()

    @workflow.query
    def state(self) -> DispatchState:
        return self._dispatch.state


async def test_a_changed_workflow_does_not_replay():
    with pytest.raises(NondeterminismError):
        await replayer(HastyDispatch).replay_workflow(history("dispatch_success"))
