"""The Temporal SDK's metrics: it serves them on a loopback port, from where they are taken over."""

from __future__ import annotations

import http.client
import logging
import socket
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client.core import Metric
    from temporalio.runtime import Runtime, TelemetryConfig

logger = logging.getLogger("harn_temporal.telemetry")

PATIENCE_S = 2.0
TRIES = 5
"""Between finding a free port and the SDK's binding it another program may have it."""

HOST = "127.0.0.1"


def measured_runtime(telemetry: TelemetryConfig) -> tuple[Runtime, str]:
    """A runtime that serves its metrics, and where: `host:port`."""
    from temporalio.runtime import PrometheusConfig, Runtime

    last: Exception | None = None
    for _ in range(TRIES):
        address = f"{HOST}:{_free_port()}"
        metrics = PrometheusConfig(
            bind_address=address,
            counters_total_suffix=True,
            unit_suffix=True,
            durations_as_seconds=True,
        )
        try:
            return Runtime(telemetry=replace(telemetry, metrics=metrics)), address
        except (ValueError, RuntimeError) as error:  # what the SDK raises for a port that is taken
            last = error
    assert last is not None
    raise last


def scrape_sdk(address: str) -> list[Metric]:
    """What the SDK serves just now; nothing, and a warning, where that cannot be had."""
    from prometheus_client.parser import text_string_to_metric_families

    connection = http.client.HTTPConnection(address, timeout=PATIENCE_S)
    try:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        return list(text_string_to_metric_families(text))
    except (OSError, http.client.HTTPException, ValueError) as error:
        logger.warning("sdk_not_scraped", extra={"error": str(error)})
        return []
    finally:
        connection.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
