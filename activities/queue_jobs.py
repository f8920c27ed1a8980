"""The activities of a consumer: select and settle, renew, wait for jobs, and check on children."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from temporalio import activity
from temporalio.exceptions import ApplicationError

from harn_temporal.activities.heartbeats import beating
from harn_temporal.activities.job_tickets import LoadedJob, load, problem_of, ticket, within_limit
from harn_temporal.activities.store_access import store_failures_told
from harn_temporal.activities.sweep import end_records
from harn_temporal.bindings import Binding
from harn_temporal.consume_contracts import (
    ChildrenToCheck,
    EndedChild,
    EndedChildren,
    JobReport,
    JobTicket,
    QueueNews,
    QueueWatch,
    Renewal,
    Renewed,
    Selected,
    Selection,
)
from harn_temporal.contracts import DispatchRequest, EventAddress
from harn_temporal.dispatch_records import end_key
from harn_temporal.errors import EventError, StoreError, UsageError
from harn_temporal.eventlog.log import EventLog, Reader, Transaction
from harn_temporal.eventlog.topics import claims_topic, queue_topic
from harn_temporal.events import TriggerEvent
from harn_temporal.gates.leaving import release as release_permits
from harn_temporal.queue.claiming import claim_caught_up
from harn_temporal.queue.keeping import release, renew
from harn_temporal.queue.models import (
    CLAIMS_AT_ONCE,
    Claim,
    ClaimOrder,
    ClaimRef,
    Claims,
    Settled,
    Settlement,
)
from harn_temporal.queue.presence import is_gone, is_present
from harn_temporal.queue.reading import load_job, pause_of
from harn_temporal.queue.settling import settle
from harn_temporal.scheduler import Policy
from harn_temporal.scheduler_figures import SchedulerFigures
from harn_temporal.workflows.activity_types import (
    CHECK_CHILDREN,
    QUEUE_REFUSED,
    RENEW_CLAIMS,
    SELECT_JOBS,
    WATCH_QUEUE,
)

ACKED = frozenset({"succeeded", "skipped"})

LONGEST_LOOK_S = 5.0
"""Between two looks at a queue that is waited for: a pause that is lifted appends nothing."""

BLOCKED_LOOK_S = 0.5
"""The least time between two selections that are made for a change of the queue alone."""

DescribeChild = Callable[[str], Awaitable[EndedChild | None]]
"""How the workflow with an id has ended; None while it runs. Raises UnavailableError."""


@dataclass(frozen=True)
class _Done:
    settled: Sequence[Settled]
    released: Sequence[str]
    claims: Claims
    jobs_head: int
    claims_head: int
    abandoned: bool


class QueueActivities:
    """`bindings` gives the manifest's bindings by trigger id, as they are registered now."""

    def __init__(
        self,
        log: EventLog,
        bindings: Callable[[], Mapping[str, Binding]],
        policy: Policy,
        figures: SchedulerFigures,
        describe: DescribeChild,
    ) -> None:
        self._log = log
        self._bindings = bindings
        self._policy = policy
        self._figures = figures
        self._describe = describe

    @activity.defn(name=SELECT_JOBS.name)
    async def select_jobs(self, message: Selection) -> Selected:
        with store_failures_told():
            try:
                done = await self._settle_and_claim(message)
                tickets, unresolved = await self._tickets(message, done.claims.claims)
                if unresolved:
                    settled = await self._log.transact(
                        lambda tx: settle(tx, message.queue, message.consumer_id, unresolved)
                    )
                    done = _Done(**{**vars(done), "settled": [*done.settled, *settled]})
            except UsageError as error:  # the queue's name
                raise ApplicationError(
                    str(error), type=QUEUE_REFUSED, non_retryable=True
                ) from error
        bindings = self._bindings()
        claims = done.claims
        return Selected(
            tickets=tuple(tickets),
            bindings=tuple(bindings[each] for each in {t.trigger_id: None for t in tickets}),
            claimed=len(claims.claims),
            handled=len(done.settled),
            acked=sum(each.acked for each in done.settled),
            lost=tuple(each.claim_id for each in done.settled if each.lost),
            released=tuple(done.released),
            ready=claims.ready,
            paused=claims.paused,
            abandoned=done.abandoned,
            next_at_ms=claims.next_at_ms,
            now_ms=claims.now_ms,
            jobs_head=done.jobs_head,
            claims_head=done.claims_head,
        )

    @activity.defn(name=RENEW_CLAIMS.name)
    async def renew_claims(self, message: Renewal) -> Renewed:
        refs = [
            ClaimRef(job_event_id=each.job_event_id, claim_id=each.claim_id)
            for each in message.claims
        ]
        with store_failures_told():
            kept = await self._log.transact(
                lambda tx: renew(tx, message.queue, message.consumer_id, refs, message.ttl_ms)
            )
        return Renewed(lost=tuple(each.claim_id for each in kept.lost))

    @activity.defn(name=WATCH_QUEUE.name)
    async def watch_queue(self, message: QueueWatch) -> QueueNews:
        with beating():
            # What blocks a selection is seldom gone at once, and each one fills a history.
            pause_s = BLOCKED_LOOK_S if message.blocked else 0.0
            mark = await self._log.changed(0, 0)
            while True:
                await asyncio.sleep(pause_s)
                with store_failures_told():
                    news, wait_s = await self._log.query(lambda reader: _news(reader, message))
                    if news:
                        return QueueNews(changed=True)
                    mark = await self._log.changed(mark, wait_s)
                pause_s = 0.0

    @activity.defn(name=CHECK_CHILDREN.name)
    async def check_children(self, message: ChildrenToCheck) -> EndedChildren:
        found = [await self._describe(each) for each in message.workflow_ids]
        return EndedChildren(ended=tuple(each for each in found if each is not None))

    async def _settle_and_claim(self, message: Selection) -> _Done:
        """In one transaction; in a few where time has made hundreds of jobs ready at once."""
        settled: Sequence[Settled] = ()
        released: Sequence[str] = ()
        reports = message.reports
        while True:
            some, given_back, done = await self._log.transact(
                partial(self._settle_release_claim, message=message, reports=reports)
            )
            settled, released, reports = [*settled, *some], [*released, *given_back], ()
            if done is not None:
                self._figures.count(message.queue, self._policy.fairness_key, done.claims)
                return _Done(**{**vars(done), "settled": settled, "released": released})

    def _settle_release_claim(
        self, tx: Transaction, message: Selection, reports: Sequence[JobReport]
    ) -> tuple[list[Settled], list[str], _Done | None]:
        settled = settle(tx, message.queue, message.consumer_id, _settlements(tx, message, reports))
        self._end_gone(tx, message, reports)
        released = _release(tx, message, reports)
        return settled, released, self._claim(tx, message)

    def _end_gone(self, tx: Transaction, message: Selection, reports: Sequence[JobReport]) -> None:
        """The end of each dispatch whose workflow was ended from outside, unless it is there."""
        for report in reports:
            dispatch = tx.dispatches.get(report.workflow_id) if report.gone else None
            binding = self._bindings().get(report.trigger_id)
            if dispatch is None or dispatch.outcome or binding is None:
                continue
            try:
                job = load_job(tx, message.queue, report.job_event_id)
                event = None if job is None else TriggerEvent.from_json(job.event)
            except (StoreError, EventError):
                continue  # then its claim was settled with the reason
            if job is None or event is None:
                continue
            request = DispatchRequest(
                store_id=self._log.store_id,
                binding=binding,
                event_id=event.id,
                trace_id=event.trace_id,
                tenant_id=event.tenant_id,
                address=EventAddress(
                    topic=queue_topic(message.queue), event_id=report.job_event_id
                ),
                event=event,
                replay_of_event_id=job.replay_of_event_id,
            )
            batch, attempt = end_records(tx, dispatch, request)
            if tx.append(batch, key=end_key(report.workflow_id, attempt)).fresh:
                release_permits(tx, report.workflow_id)

    def _claim(self, tx: Transaction, message: Selection) -> _Done | None:
        serves = message.mode == "serve"
        # Drains that were killed would together claim more than those that are left can run.
        abandoned = (
            not is_present(tx, message.consumer_id) if serves else is_gone(tx, message.consumer_id)
        )
        if message.limit and not abandoned:
            order = ClaimOrder(
                queue=message.queue,
                consumer_id=message.consumer_id,
                limit=min(message.limit, CLAIMS_AT_ONCE),
                ttl_ms=message.ttl_ms,
                excluded_keys=message.excluded_keys,
                request_id=message.request_id,
                not_again_since_ms=message.since_ms if message.mode == "drain" else None,
            )
            claims = claim_caught_up(tx, order, self._policy)
            if claims is None:
                return None
        else:
            claims = Claims(now_ms=tx.now_ms)
        return _Done(
            (),
            (),
            claims,
            tx.head(queue_topic(message.queue)),
            tx.head(claims_topic(message.queue)),
            abandoned,
        )

    async def _tickets(
        self, message: Selection, claims: Sequence[Claim]
    ) -> tuple[list[JobTicket], list[Settlement]]:
        """What to dispatch, and how those end that cannot be dispatched."""
        if not claims:
            return [], []
        loaded = await self._log.query(lambda reader: [load(reader, each) for each in claims])
        bindings = self._bindings()
        tickets: list[JobTicket] = []
        unresolved: list[Settlement] = []
        for claim, job in zip(claims, loaded, strict=True):
            problem = job if isinstance(job, str) else problem_of(job.job, bindings, message.queue)
            if 0 < message.max_deliveries < claim.delivery:
                problem = f"the job was delivered {claim.delivery - 1} times and came to no end"
            if problem is None and isinstance(job, LoadedJob):
                tickets.append(ticket(claim, job))
                continue
            unresolved.append(
                Settlement(
                    job_event_id=claim.job_event_id,
                    claim_id=claim.claim_id,
                    error=problem,
                    ack=_worn(message, claim.delivery),
                )
            )
        return within_limit(tickets), unresolved


def _settlements(
    reader: Reader, message: Selection, reports: Sequence[JobReport]
) -> list[Settlement]:
    """A response for each report that has something to tell; a mere release has not."""
    return [
        Settlement(
            job_event_id=report.job_event_id,
            claim_id=report.claim_id,
            outcome=report.outcome,
            error=report.error,
            ack=_is_done(reader, report)
            or (report.release is None and _worn(message, report.delivery)),
        )
        for report in reports
        if report.outcome is not None or report.error is not None
    ]


def _is_done(reader: Reader, report: JobReport) -> bool:
    """A request to cancel is durable: each further delivery would end as this one did."""
    outcome = report.outcome
    if outcome is None:
        return False
    return outcome.status in ACKED or (
        outcome.status == "cancelled"
        and outcome.replay_of_event_id is None
        and reader.cancel_requests.requested(outcome.binding_key, outcome.event_id)
    )


def _worn(message: Selection, delivery: int) -> bool:
    return 0 < message.max_deliveries <= delivery


def _release(tx: Transaction, message: Selection, reports: Sequence[JobReport]) -> list[str]:
    """The claim ids that were given back."""
    released: list[str] = []
    for report in reports:
        if report.release is None or (report.unless_begun and _has_begun(tx, report)):
            continue
        ref = ClaimRef(job_event_id=report.job_event_id, claim_id=report.claim_id)
        kept = release(tx, message.queue, message.consumer_id, [ref], report.release)
        released += [each.claim_id for each in kept.held]
    return released


def _has_begun(tx: Transaction, report: JobReport) -> bool:
    dispatch = tx.dispatches.get(report.workflow_id)
    return dispatch is not None and (dispatch.started_attempt > 0 or dispatch.outcome != "")


def _news(reader: Reader, watch: QueueWatch) -> tuple[bool, float]:
    """Whether a selection may find something, and else how long to wait before the next look."""
    paused = pause_of(reader, watch.queue) is not None
    if paused:
        return False, LONGEST_LOOK_S
    jobs_head, claims_head = (
        reader.head(queue_topic(watch.queue)),
        reader.head(claims_topic(watch.queue)),
    )
    changed = watch.paused or jobs_head != watch.jobs_head or claims_head != watch.claims_head
    if watch.next_at_ms is None:
        return changed, LONGEST_LOOK_S
    left_s = (watch.next_at_ms - reader.now_ms) / 1000
    return changed or left_s <= 0, max(0.0, min(LONGEST_LOOK_S, left_s))
