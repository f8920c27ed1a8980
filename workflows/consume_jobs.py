"""The jobs that a consumer holds: running, parked, and ended but not settled yet."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from harn_temporal.canonical import encode
from harn_temporal.consume_contracts import (
    PARKED_PER_SLOT,
    CarriedJob,
    ClaimToKeep,
    JobReport,
    JobTicket,
)
from harn_temporal.contracts import DispatchOutcome

REPORTS_AT_ONCE = 64
RESULTS_AT_ONCE = 512 * 1024
"""Bytes of results in one settlement: Temporal takes inputs of up to 2 MiB."""


@dataclass(eq=False)
class HeldJob:
    """`task` runs it: the dispatch itself, or the wait for its child. A carried one has none."""

    ticket: JobTicket
    task: asyncio.Task[None] | None = None
    child: bool = False
    started: bool = False
    """Whether the child is there, to be cancelled or signalled by name."""
    carried: bool = False
    parked: bool = False
    lost: bool = False


class HeldJobs:
    def __init__(
        self, carried: tuple[CarriedJob, ...], reports: tuple[JobReport, ...], max_concurrent: int
    ) -> None:
        self._max_concurrent = max_concurrent
        self._jobs = {
            each.ticket.claim_id: HeldJob(
                each.ticket,
                child=True,
                started=True,
                carried=True,
                parked=each.parked,
                lost=each.lost,
            )
            for each in carried
        }
        self._reports = list(reports)
        self._settling: tuple[JobReport, ...] = ()

    def __iter__(self) -> Iterator[HeldJob]:
        return iter(list(self._jobs.values()))

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def running(self) -> int:
        return sum(not job.parked for job in self._jobs.values())

    @property
    def parked(self) -> int:
        return len(self._jobs) - self.running

    @property
    def inline(self) -> int:
        """Jobs whose steps run in this very history."""
        return sum(not job.child for job in self._jobs.values())

    @property
    def free_slots(self) -> int:
        return max(0, self._max_concurrent - self.running)

    @property
    def reports(self) -> tuple[JobReport, ...]:
        return tuple(self._reports)

    def keys_to_leave(self) -> tuple[str, ...]:
        """Keys of which no more is claimed, since too many jobs are parked."""
        if self.parked < PARKED_PER_SLOT * self._max_concurrent:
            return ()
        return tuple(sorted({job.ticket.fairness_key for job in self if job.parked}))

    def add(self, job: HeldJob) -> None:
        self._jobs[job.ticket.claim_id] = job

    def forget(self, claim_id: str) -> None:
        self._jobs.pop(claim_id, None)

    def find(self, claim_id: str) -> HeldJob | None:
        return self._jobs.get(claim_id)

    def end(
        self,
        claim_id: str,
        *,
        outcome: DispatchOutcome | None = None,
        error: str | None = None,
        release: str | None = None,
        gone: bool = False,
    ) -> None:
        """Note how a job ended, once; it stays claimed until that is settled."""
        job = self._jobs.pop(claim_id, None)
        if job is not None:
            self.report(job.ticket, outcome=outcome, error=error, release=release, gone=gone)

    def report(
        self,
        ticket: JobTicket,
        *,
        outcome: DispatchOutcome | None = None,
        error: str | None = None,
        release: str | None = None,
        unless_begun: bool = False,
        gone: bool = False,
    ) -> None:
        self._reports.append(
            JobReport(
                job_event_id=ticket.job_event_id,
                claim_id=ticket.claim_id,
                delivery=ticket.delivery,
                workflow_id=ticket.workflow_id,
                outcome=outcome,
                error=error,
                release=release,
                unless_begun=unless_begun,
                gone=gone,
                trigger_id=ticket.trigger_id if gone else "",
            )
        )

    def take_reports(self) -> tuple[JobReport, ...]:
        """The reports to settle next: as many as one input may carry."""
        taken = 0
        size = 0
        while taken < min(len(self._reports), REPORTS_AT_ONCE):
            size += _size(self._reports[taken])
            if taken and size > RESULTS_AT_ONCE:
                break
            taken += 1
        self._settling = tuple(self._reports[:taken])
        del self._reports[:taken]
        return self._settling

    def settled(self) -> None:
        self._settling = ()

    def claims(self) -> tuple[ClaimToKeep, ...]:
        """What is to be renewed: also the claims of jobs whose end is not settled yet."""
        held = [(job.ticket.job_event_id, job.ticket.claim_id) for job in self if not job.lost]
        held += [(each.job_event_id, each.claim_id) for each in self._reports]
        held += [(each.job_event_id, each.claim_id) for each in self._settling]
        return tuple(
            ClaimToKeep(job_event_id=job, claim_id=claim) for job, claim in dict.fromkeys(held)
        )

    def carried(self) -> tuple[CarriedJob, ...]:
        return tuple(
            CarriedJob(ticket=job.ticket, parked=job.parked, lost=job.lost) for job in self
        )


def _size(report: JobReport) -> int:
    result = None if report.outcome is None else report.outcome.result
    if isinstance(result, (dict, list)):
        return len(encode(result))
    return len(result) if isinstance(result, str) else 0
