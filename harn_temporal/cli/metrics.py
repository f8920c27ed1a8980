"""`harn-temporal metrics`: the Prometheus exposition of a store, from a fresh process."""

from __future__ import annotations

import typer

from harn_temporal.cli.options import common_options


def metrics(ctx: typer.Context) -> None:
    """Print the Prometheus exposition of a store. It starts no server and needs none.

    Gauges are those that the worker with the pump exports. The counters of received, dispatched,
    retried and dead dispatches and of the scheduler count since the store was made, for triggers
    and keys that are still there. What only a process knows is missing: histograms, deduped,
    in-flight by trigger, hops, and the SDK's own.

    Example: harn-temporal metrics --state-dir ./state
    """
    import sys

    from harn_temporal.cli.reading import reading
    from harn_temporal.cli.scheduling import scheduler_policy
    from harn_temporal.telemetry.exposition import store_exposition

    policy = scheduler_policy()
    sys.stdout.write(
        reading(common_options(ctx), lambda log: store_exposition(log, policy)).decode()
    )
