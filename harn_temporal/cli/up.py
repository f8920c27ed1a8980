"""`harn-temporal up`: everything on one machine."""

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


def up(
    ctx: typer.Context,
    *,
    consume: ConsumeOption = None,
    adopt_foreign: AdoptForeignOption = False,
    metrics_port: Annotated[
        int,
        typer.Option(
            "--metrics-port",
            metavar="P",
            min=0,
            max=HIGHEST_PORT,
            help="The port of /metrics; 0 is any free one, which is shown at the start",
        ),
    ] = 0,
    metrics_host: MetricsHostOption = LOOPBACK,
    address: AddressOption = None,
    profile: ProfileOption = None,
) -> None:
    """Run everything on this machine: embedded server, Web UI, worker and pump.

    Ctrl-C drains and exits 0: handlers may end what they do, retries keep their time. Timers
    pause while the embedded server is down.

    Example: harn-temporal up --config harn.toml
    """
    from harn_temporal.cli.serving import consumers, serve
    from harn_temporal.temporal.connect import TemporalOptions
    from harn_temporal.worker import WorkerOptions

    serve(
        common_options(ctx),
        TemporalOptions(address, profile),
        WorkerOptions(consume=consumers(consume or ()), adopt_foreign=adopt_foreign),
        MetricsAddress(metrics_host, metrics_port),
    )
