"""How a consumer keeps its claims while their jobs run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import FailureError, is_cancelled_exception

from harn_temporal.consume_contracts import ConsumeRequest, Renewal, Renewed
from harn_temporal.workflows.activity_types import RENEW_CLAIMS
from harn_temporal.workflows.calls import ONCE
from harn_temporal.workflows.consume_jobs import HeldJob, HeldJobs

RENEWAL_TIMEOUT = timedelta(seconds=10)


async def renew_claims(
    request: ConsumeRequest, jobs: HeldJobs, cancel: Callable[[HeldJob], Awaitable[None]]
) -> None:
    """Renew all claims at half their time, in one call, until cancelled.

    `cancel` stops the handler of a job that somebody else has taken. The settlement says what
    happened.
    """
    half = timedelta(milliseconds=request.ttl_ms) / 2
    while True:
        await workflow.sleep(half)
        claims = jobs.claims()
        if not claims:
            continue
        try:
            renewed: Renewed = await workflow.execute_local_activity(
                RENEW_CLAIMS.name,
                Renewal(
                    queue=request.queue,
                    consumer_id=request.consumer_id,
                    ttl_ms=request.ttl_ms,
                    claims=claims,
                ),
                result_type=RENEW_CLAIMS.output,
                schedule_to_close_timeout=RENEWAL_TIMEOUT,
                retry_policy=ONCE,
            )
        except FailureError as error:
            if is_cancelled_exception(error):
                raise
            workflow.logger.warning("renewal_failed", extra={"error": str(error)})
            continue
        for claim_id in renewed.lost:
            job = jobs.find(claim_id)
            if job is not None and not job.lost:
                job.lost = True
                workflow.logger.warning(
                    "claim_lost",
                    extra={"claim_id": claim_id, "job_event_id": job.ticket.job_event_id},
                )
                await cancel(job)
