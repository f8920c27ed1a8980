from __future__ import annotations

from temporalio import workflow

from harn_temporal.contracts import DispatchOutcome, DispatchRequest, DispatchState
from harn_temporal.gate_contracts import ASK_GATES_AGAIN
from harn_temporal.workflows.consumer_link import ConsumerLink
from harn_temporal.workflows.dispatch_page import DispatchPage
from harn_temporal.workflows.dispatch_steps import Dispatch


@workflow.defn(name="DispatchWorkflow")
class DispatchWorkflow:
    """A dispatch with a history of its own: one event for one binding, or one job of a queue."""

    @workflow.init
    def __init__(self, request: DispatchRequest) -> None:
        self._link = ConsumerLink.of(request)
        self._dispatch = Dispatch(
            request,
            dispatch_id=workflow.info().workflow_id,
            page=DispatchPage(request),
            waits=self._link,
        )

    @workflow.run
    async def run(self, request: DispatchRequest) -> DispatchOutcome:  # noqa: ARG002 - taken by init
        outcome = await self._dispatch.run()
        if self._link is not None:
            await self._link.ended(outcome)
        return outcome

    @workflow.signal
    def report_by_signal(self) -> None:
        """The consumer's run ends before this one: its next run cannot see how this one ends."""
        if self._link is not None:
            self._link.report_by_signal = True

    @workflow.signal(name=ASK_GATES_AGAIN)
    def ask_gates_again(self) -> None:
        """Somebody freed a place at a gate that this dispatch may wait at."""
        self._dispatch.ask_gates_again()

    @workflow.query
    def state(self) -> DispatchState:
        return self._dispatch.state
