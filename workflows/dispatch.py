from __future__ import annotations

from temporalio import workflow

from harn_temporal.contracts import DispatchOutcome, DispatchRequest, DispatchState
from harn_temporal.workflows.dispatch_page import DispatchPage
from harn_temporal.workflows.dispatch_steps import Dispatch


@workflow.defn(name="DispatchWorkflow")
class DispatchWorkflow:
    """A dispatch with a history of its own: one event for one binding."""

    @workflow.init
    def __init__(self, request: DispatchRequest) -> None:
        self._dispatch = Dispatch(
            request, dispatch_id=workflow.info().workflow_id, page=DispatchPage(request)
        )

    @workflow.run
    async def run(self, request: DispatchRequest) -> DispatchOutcome:  # noqa: ARG002 - taken by init
        return await self._dispatch.run()

    @workflow.query
    def state(self) -> DispatchState:
        return self._dispatch.state
