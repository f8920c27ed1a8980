"""How a command is seen from outside: its log records and its traces."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from harn_temporal.cli.logs import configure_logging
from harn_temporal.telemetry.otel_settings import read_otel_settings

if TYPE_CHECKING:
    from harn_temporal.cli.options import CommonOptions


def observe(options: CommonOptions) -> None:
    """Set up logging, and tracing where it is exported. Raises UsageError.

    What is left of traces is sent when the program ends, by `entry.main`.
    """
    configure_logging(
        debug=options.debug, as_json=options.log_format == "json", level=options.log_level
    )
    settings = read_otel_settings(os.environ)
    if settings is not None:
        from harn_temporal.telemetry import otel

        otel.start(settings)
