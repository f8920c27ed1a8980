"""Where `up` and `worker` serve their metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

LOOPBACK = "127.0.0.1"
HIGHEST_PORT = 65_535

MetricsHostOption = Annotated[
    str,
    typer.Option(
        "--metrics-host",
        metavar="HOST",
        help="The address that metrics are served at; 0.0.0.0 for other hosts to reach",
    ),
]


@dataclass(frozen=True, slots=True)
class MetricsAddress:
    """Port 0 is any free one.

    `of_store` says that the figures of the store are served whether the pump runs here or not.
    """

    host: str
    port: int
    of_store: bool = False
