"""`harn-temporal queue drain`: handle what a queue holds, and end."""

from __future__ import annotations

from typing import Annotated

import typer

from harn_temporal.cli.options import AddressOption, JsonOption, ProfileOption, common_options
from harn_temporal.cli.worker import MOST_CONCURRENT
from harn_temporal.errors import UsageError

LEAST_TTL_MS = 1_000


def drain(
    ctx: typer.Context,
    queue: Annotated[str, typer.Argument(metavar="QUEUE", help="A queue's name")],
    *,
    consumer_id: Annotated[
        str | None,
        typer.Option("--consumer-id", metavar="ID", help="Who claims; by default this process"),
    ] = None,
    claim_ttl: Annotated[
        str,
        typer.Option(
            "--claim-ttl",
            metavar="DURATION",
            help="How long a claim holds that is not renewed",
        ),
    ] = "5m",
    max_concurrent: Annotated[
        int,
        typer.Option(
            "--max-concurrent",
            metavar="N",
            min=1,
            max=MOST_CONCURRENT,
            help="Jobs that run at a time",
        ),
    ] = 16,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="The most jobs to take")
    ] = None,
    inline: Annotated[
        bool,
        typer.Option(
            "--inline", help="Run jobs in the consumer's own workflow: faster, without a page each"
        ),
    ] = False,
    max_deliveries: Annotated[
        int,
        typer.Option(
            "--max-deliveries",
            metavar="N",
            min=0,
            help="Take a job from the queue that failed in so many deliveries; 0 for none",
        ),
    ] = 0,
    as_json: JsonOption = False,
    address: AddressOption = None,
    profile: ProfileOption = None,
) -> None:
    """Claim, dispatch, respond and ack until no job is ready.

    Exits 1 where a job was handled and not acked: it is claimed again once its claim is over.
    SIGTERM and SIGINT end the drain in order.

    Example: harn-temporal queue drain triage --consumer-id worker-a --max-concurrent 8
    """
    from harn_temporal.cli.drain_run import DrainOptions, run_drain
    from harn_temporal.durations import parse_duration
    from harn_temporal.temporal.connect import TemporalOptions

    ttl_ms = parse_duration(claim_ttl)
    if ttl_ms < LEAST_TTL_MS:
        raise UsageError("--claim-ttl is at least 1s")
    run_drain(
        common_options(ctx),
        TemporalOptions(address, profile),
        DrainOptions(
            queue=queue,
            consumer_id=consumer_id,
            ttl_ms=ttl_ms,
            max_concurrent=max_concurrent,
            limit=limit,
            inline=inline,
            max_deliveries=max_deliveries,
        ),
        as_json=as_json,
    )
