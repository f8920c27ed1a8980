"""What the child workflow of a job tells its consumer: that it waits, goes on, and has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import FailureError

from harn_temporal.consume_contracts import JobEnded, JobMoved
from harn_temporal.contracts import AttemptOutcome, DispatchOutcome, DispatchRequest

JOB_PARKED = "job_parked"
JOB_RESUMED = "job_resumed"
JOB_ENDED = "job_ended"
REPORT_BY_SIGNAL = "report_by_signal"

WORTH_TELLING = timedelta(seconds=1)
"""A wait that is shorter than this is over before its consumer has made use of the slot."""


class ConsumerLink:
    """A child's way to its consumer.

    How it ends the consumer sees by itself, as long as the run that started the child goes on;
    that run asks for `report_by_signal` before it ends.
    """

    def __init__(self, consumer: str, claim_id: str) -> None:
        self._consumer = consumer
        self._claim_id = claim_id
        self._parked = False
        self._telling: asyncio.Future[None] | None = None
        self.report_by_signal = False

    @staticmethod
    def of(request: DispatchRequest) -> ConsumerLink | None:
        if request.consumer is None or request.claim is None:
            return None
        return ConsumerLink(request.consumer, request.claim.claim_id)

    def begins(self, outcome: AttemptOutcome | None, delay: timedelta | None) -> None:  # noqa: ARG002
        if not self._parked and (delay is None or delay >= WORTH_TELLING):
            self._parked = True
            self._tell(JOB_PARKED)

    def ends(self) -> None:
        if self._parked:
            self._parked = False
            self._tell(JOB_RESUMED)

    async def ended(self, outcome: DispatchOutcome) -> None:
        """Returns when the consumer has been told, where that is needed."""
        if self._telling is not None:
            await self._telling
        if self.report_by_signal:
            message = JobEnded(claim_id=self._claim_id, outcome=outcome)
            await _delivered(self._consumer, JOB_ENDED, message)

    def _tell(self, signal: str) -> None:
        message = JobMoved(claim_id=self._claim_id)
        self._telling = asyncio.ensure_future(
            _after(self._telling, _delivered(self._consumer, signal, message))
        )


async def _after(before: asyncio.Future[None] | None, work: Coroutine[Any, Any, None]) -> None:
    """In order: a consumer that heard "goes on" before "waits" would count wrongly."""
    if before is not None:
        await before
    await work


async def _delivered(consumer: str, signal: str, message: JobMoved | JobEnded) -> None:
    """A consumer that is gone needs not be told: its claims expire, or it was ended on purpose."""
    try:
        await workflow.get_external_workflow_handle(consumer).signal(signal, message)
    except FailureError as error:
        workflow.logger.warning("consumer_not_told", extra={"signal": signal, "error": str(error)})
