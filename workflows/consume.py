from __future__ import annotations

from temporalio import workflow

from harn_temporal.consume_contracts import (
    ConsumeRequest,
    ConsumeResult,
    ConsumeState,
    JobEnded,
    JobMoved,
)
from harn_temporal.workflows.consume_steps import Consumer


@workflow.defn(name="ConsumeWorkflow")
class ConsumeWorkflow:
    """A consumer of a worker queue: claims jobs, has each dispatched, and settles them."""

    @workflow.init
    def __init__(self, request: ConsumeRequest) -> None:
        self._consumer = Consumer(request)

    @workflow.run
    async def run(self, request: ConsumeRequest) -> ConsumeResult:  # noqa: ARG002 - taken by init
        return await self._consumer.run()

    @workflow.signal
    def stop(self, reason: str) -> None:
        """Claim nothing more, give back what has not begun, and end when the rest has."""
        self._consumer.stop(reason)

    @workflow.signal
    def job_parked(self, message: JobMoved) -> None:
        self._consumer.parked(message.claim_id, parked=True)

    @workflow.signal
    def job_resumed(self, message: JobMoved) -> None:
        self._consumer.parked(message.claim_id, parked=False)

    @workflow.signal
    def job_ended(self, message: JobEnded) -> None:
        self._consumer.ended(message.claim_id, message.outcome)

    @workflow.signal
    async def cancel_job(self, message: JobMoved) -> None:
        """Cancel a job that has no workflow of its own to be cancelled by."""
        await self._consumer.cancel_job(message.claim_id)

    @workflow.query
    def state(self) -> ConsumeState:
        return self._consumer.state
