"""`harn-temporal worker`: a worker process, one of many if need be."""

from __future__ import annotations

from typing import Annotated

import typer

from harn_temporal.cli.metrics_options import (
    HIGHEST_PORT,
    LOOPBACK,
    MetricsAddress,
    MetricsHostOption,
)
from harn_temporal.cli.options import (
    AddressOption,
    AdoptForeignOption,
    ConsumeOption,
    ProfileOption,
    common_options,
)
from harn_temporal.errors import UsageError

MOST_CONCURRENT = 10_000


def worker(
    ctx: typer.Context,
    *,
    max_concurrent: Annotated[
        int,
        typer.Option(
            "--max-concurrent",
            metavar="N",
            min=1,
            max=MOST_CONCURRENT,
            help="Handlers that run at a time",
        ),
    ] = 16,
    no_pump: Annotated[
        bool,
        typer.Option("--no-pump", help="Only run dispatches; leave starting them to other workers"),
    ] = False,
    consume: ConsumeOption = None,
    adopt_foreign: AdoptForeignOption = False,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port",
            metavar="P",
            min=0,
            max=HIGHEST_PORT,
            help="Serve /metrics at this port; 0 is any free one, which is shown at the start",
        ),
    ] = None,
    metrics_host: MetricsHostOption = LOOPBACK,
    store_metrics: Annotated[
        bool,
        typer.Option(
            "--store-metrics",
            help="With --no-pump: serve the metrics of the store too, where no worker pumps",
        ),
    ] = False,
    address: AddressOption = None,
    profile: ProfileOption = None,
) -> None:
    """Run a worker for the manifest until it is told to stop.

    SIGTERM and SIGINT drain and exit 0: handlers get 10 s to end what they do, what they do not
    end is run again by the next worker, and retries keep their time. A second signal ends at once.

    Example: harn-temporal worker --address temporal.example:7233 --max-concurrent 8
    """
    from harn_temporal.cli.serving import consumers, serve
    from harn_temporal.temporal.connect import TemporalOptions
    from harn_temporal.worker import WorkerOptions

    if no_pump and adopt_foreign:
        raise UsageError("--adopt-foreign is about the pump, which --no-pump leaves out")
    if store_metrics and not (no_pump and metrics_port is not None):
        raise UsageError(
            "--store-metrics goes with --no-pump and --metrics-port: where workers pump, the one "
            "whose pump runs serves the metrics of the store"
        )
    serve(
        common_options(ctx),
        TemporalOptions(address, profile),
        WorkerOptions(
            max_concurrent=max_concurrent,
            pump=not no_pump,
            consume=consumers(consume or (), max_concurrent),
            adopt_foreign=adopt_foreign,
        ),
        None if metrics_port is None else MetricsAddress(metrics_host, metrics_port, store_metrics),
    )
