"""`harn-temporal queue`: worker queues and their jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from harn_temporal.cli import queue_drain, queue_enqueue
from harn_temporal.cli.options import JsonOption, common_options
from harn_temporal.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from harn_temporal.eventlog.log import EventLog, Reader, Transaction
    from harn_temporal.inspection.queue_overview import JobView

app = typer.Typer(help="Worker queues: what they hold, and what is done with it.")
app.command("enqueue")(queue_enqueue.enqueue)
app.command("drain")(queue_drain.drain)

QueueArgument = Annotated[str, typer.Argument(metavar="QUEUE", help="A queue's name")]
State = Literal["ready", "delayed", "in-flight", "parked", "acked", "purged"]

MOST_JOBS = 10_000


@app.callback(invoke_without_command=True)
def queue(ctx: typer.Context) -> None:
    """Worker queues: what they hold, and what is done with it. Without a command it lists them.

    Example: harn-temporal queue ls
    """
    if ctx.invoked_subcommand is None:
        list_queues(ctx)


@app.command("ls")
def list_queues(ctx: typer.Context, *, as_json: JsonOption = False) -> None:
    """Show the dispatcher's figures, the worker queues, and who gets the next claim.

    Example: harn-temporal queue ls --json
    """
    from harn_temporal.cli.output import print_json
    from harn_temporal.cli.queue_lines import print_overview
    from harn_temporal.cli.reading import reading
    from harn_temporal.cli.scheduling import scheduler_policy
    from harn_temporal.inspection.queue_overview import queue_overview

    policy = scheduler_policy()

    async def look(log: EventLog) -> dict[str, Any]:
        return await log.query(lambda reader: queue_overview(reader, policy))

    found = reading(common_options(ctx), look)
    if as_json:
        print_json(found)
    else:
        print_overview(found)


@app.command("jobs")
def list_jobs(
    ctx: typer.Context,
    queue: QueueArgument,
    *,
    state: Annotated[State | None, typer.Option("--state", help="Only jobs of this state")] = None,
    after: Annotated[
        int, typer.Option("--after", metavar="JOB_EVENT_ID", min=0, help="Go on after this job")
    ] = 0,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=MOST_JOBS, help="The most jobs")
    ] = 200,
    as_json: JsonOption = False,
) -> None:
    """List the jobs of a queue one by one. Parked is what waits for a retry, a gate or a task.

    Example: harn-temporal queue jobs triage --state in-flight
    """
    from harn_temporal.cli.output import note, print_json
    from harn_temporal.cli.queue_lines import print_jobs
    from harn_temporal.cli.reading import reading
    from harn_temporal.cli.scheduling import scheduler_policy
    from harn_temporal.inspection.queue_overview import queue_jobs

    policy = scheduler_policy()

    def find(reader: Reader) -> tuple[list[JobView], int]:
        views = queue_jobs(reader, queue, policy, state=state, after=after, limit=limit)
        return views, reader.now_ms

    async def look(log: EventLog) -> tuple[list[JobView], int]:
        return await log.query(find)

    views, now_ms = reading(common_options(ctx), look)
    if as_json:
        print_json({"queue": queue, "jobs": [view.to_json(now_ms) for view in views]})
        return
    print_jobs(views, now_ms)
    if len(views) == limit:
        note(f"There may be more: --after {views[-1].job.job_event_id}")


@app.command("release")
def release_job(
    ctx: typer.Context,
    queue: QueueArgument,
    job: Annotated[int, typer.Argument(metavar="JOB_EVENT_ID", min=1, help="A job's id")],
    *,
    reason: Annotated[str | None, typer.Option("--reason", metavar="R", help="Why")] = None,
    as_json: JsonOption = False,
) -> None:
    """Give the claim of a job up now, so that another consumer can take it.

    Example: harn-temporal queue release triage 42 --reason "its host is gone"
    """
    from harn_temporal.cli.output import line, print_json
    from harn_temporal.cli.reading import reading
    from harn_temporal.inspection.queue_overview import known_queue
    from harn_temporal.operations.audit import operator_name
    from harn_temporal.queue.consumer_ids import default_consumer_id
    from harn_temporal.queue.keeping import release
    from harn_temporal.queue.models import ClaimRef

    by = operator_name() or default_consumer_id()
    why = f"released by {by}" + (f": {reason}" if reason else "")

    def work(tx: Transaction) -> dict[str, Any]:
        page = tx.queues.listed(known_queue(tx, queue), job - 1, 1)
        found = page[0] if page and page[0].job_event_id == job else None
        if found is None:
            raise NotFoundError(f"queue {queue!r} has no job {job}")
        if found.claim_id is None or found.consumer_id is None:
            raise NotFoundError(f"job {job} of queue {queue!r} is {found.state}: nobody claims it")
        claim = ClaimRef(job_event_id=job, claim_id=found.claim_id)
        release(tx, queue, found.consumer_id, [claim], why)
        return {
            "queue": queue,
            "job_event_id": job,
            "claim_id": found.claim_id,
            "consumer_id": found.consumer_id,
            "reason": why,
        }

    async def act(log: EventLog) -> dict[str, Any]:
        return await log.transact(work)

    found = reading(common_options(ctx), act)
    if as_json:
        print_json(found)
    else:
        line(f"Released job {job} of queue {queue}, which {found['consumer_id']} had claimed.")


@app.command("pause")
def pause_queue(ctx: typer.Context, queue: QueueArgument, *, as_json: JsonOption = False) -> None:
    """Let our consumers claim nothing more from a queue; what runs goes on.

    Example: harn-temporal queue pause triage
    """
    from harn_temporal.operations.audit import operator_name
    from harn_temporal.queue.consumer_ids import default_consumer_id
    from harn_temporal.queue.pausing import pause

    by = operator_name() or default_consumer_id()
    _set_pause(
        ctx, queue, lambda tx: pause(tx, queue, by), f"Paused queue {queue}.", as_json=as_json
    )


@app.command("resume")
def resume_queue(ctx: typer.Context, queue: QueueArgument, *, as_json: JsonOption = False) -> None:
    """Let consumers claim from a paused queue again.

    Example: harn-temporal queue resume triage
    """
    from harn_temporal.queue.pausing import resume

    _set_pause(ctx, queue, lambda tx: resume(tx, queue), f"Queue {queue} goes on.", as_json=as_json)


@app.command("purge")
def purge_queue(
    ctx: typer.Context,
    queue: QueueArgument,
    *,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Needed: what is purged is gone")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Drop the jobs that nobody has claimed; those in flight stay.

    Example: harn-temporal queue purge triage --confirm
    """
    from harn_temporal.cli.output import line, print_json
    from harn_temporal.cli.reading import reading
    from harn_temporal.inspection.queue_overview import known_queue, queue_summary
    from harn_temporal.queue.consumer_ids import default_consumer_id
    from harn_temporal.queue.operations import WorkerQueue
    from harn_temporal.scheduler.policy import Policy

    if not confirm:
        raise UsageError(
            f"purging drops the ready jobs of queue {queue!r} for good; say --confirm to do it"
        )

    async def act(log: EventLog) -> dict[str, Any]:
        await log.query(lambda reader: known_queue(reader, queue))
        purged = await WorkerQueue(log, queue, Policy()).purge(default_consumer_id(), "queue purge")
        summary = await log.query(lambda reader: queue_summary(reader, queue))
        return {"queue": queue, "purged": purged, "summary": summary}

    found = reading(common_options(ctx), act)
    if as_json:
        print_json(found)
    else:
        line(
            f"Purged {found['purged']} jobs of queue {queue}; "
            f"{found['summary']['in_flight']} are in flight."
        )


def _set_pause(ctx: typer.Context, queue: str, change: Any, said: str, *, as_json: bool) -> None:
    from harn_temporal.cli.output import line, print_json
    from harn_temporal.cli.reading import reading
    from harn_temporal.inspection.queue_overview import known_queue, queue_summary

    def work(tx: Transaction) -> dict[str, Any]:
        known_queue(tx, queue)
        change(tx)
        return queue_summary(tx, queue)

    async def act(log: EventLog) -> dict[str, Any]:
        return await log.transact(work)

    found = reading(common_options(ctx), act)
    if as_json:
        print_json(found)
    else:
        line(said)
