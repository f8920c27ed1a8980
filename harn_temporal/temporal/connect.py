"""Finds the Temporal service of a command, and connects to it.

`--address` or `--profile`, else Temporal's own configuration (environment, then its file), else
the embedded server of the state dir, started where it does not run.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, UpdateNamespaceRequest
from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)
from temporalio.service import RPCError, RPCStatusCode

from harn_temporal.errors import TemporalUnavailableError, UsageError
from harn_temporal.telemetry.sdk_metrics import measured_runtime
from harn_temporal.temporal.converter import data_converter
from harn_temporal.temporal.embedded import embedded_server

SDK_DEFAULT_ADDRESS = "localhost:7233"
CONNECT_SECONDS = 6.0
EMBEDDED_SECONDS = 30.0
"""A server that has just begun to listen may need a while on a busy machine."""

RETRY_SECONDS = 0.1
EMBEDDED_RETENTION = timedelta(days=30)

_UNREACHABLE = frozenset(
    {
        RPCStatusCode.UNAVAILABLE,
        RPCStatusCode.DEADLINE_EXCEEDED,
        RPCStatusCode.CANCELLED,
        RPCStatusCode.UNAUTHENTICATED,
    }
)


@dataclass(frozen=True, slots=True)
class TemporalOptions:
    """What the command line says about the Temporal service."""

    address: str | None = None
    profile: str | None = None


@dataclass(frozen=True, slots=True)
class Connection:
    """A connected client, and where it leads. `ui_url` is known for the embedded server only."""

    client: Client
    address: str
    ui_url: str | None = None
    sdk_metrics: str | None = None
    """The host and port where the SDK serves its metrics, if it was asked to."""


def service_configuration(options: TemporalOptions) -> dict[str, Any] | None:
    """Arguments for `Client.connect`, or None where nothing names a service: the embedded one.

    Raises UsageError where Temporal's configuration cannot be read or lacks the profile.
    """
    try:
        found: dict[str, Any] = dict(
            ClientConfig.load_client_connect_config(profile=options.profile)
        )
    except (RuntimeError, OSError, ValueError) as error:  # the SDK's ConfigError is a RuntimeError
        raise UsageError(
            f"Temporal's configuration cannot be used: {error}. It comes from --profile, the "
            "TEMPORAL_… variables and the file that TEMPORAL_CONFIG_FILE names."
        ) from error
    if options.address is not None:
        found["target_host"] = options.address
    if not found:
        return None
    found.setdefault("target_host", SDK_DEFAULT_ADDRESS)
    return found


@asynccontextmanager
async def connect(
    options: TemporalOptions, state_dir: Path, *, measured: bool = False
) -> AsyncIterator[Connection]:
    """A client for as long as the context is open; the embedded server lives as long.

    With `measured` the SDK serves its metrics at `Connection.sdk_metrics`.

    Raises TemporalUnavailableError, within seconds, where no service answers; also for calls made
    inside the context that fail because it went away.
    """
    configuration = service_configuration(options)
    runtime, sdk_metrics = _runtime(measured=measured)
    if configuration is not None:
        address = configuration["target_host"]
        client = await _connected(configuration, CONNECT_SECONDS, runtime)
        async with _mapped(address):
            yield Connection(client, address, sdk_metrics=sdk_metrics)
        return
    async with embedded_server(state_dir) as server:
        configuration = {"target_host": server.address}
        client = await _connected(configuration, EMBEDDED_SECONDS, runtime)
        async with _mapped(server.address):
            await _keep_closed_runs(client)
            yield Connection(client, server.address, server.ui_url, sdk_metrics)


async def _connected(configuration: dict[str, Any], seconds: float, runtime: Runtime) -> Client:
    """A client whose namespace has been seen, tried for until `seconds` are over."""
    address, namespace = configuration["target_host"], configuration.get("namespace", "default")
    reason: Exception | None = None
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    client = await Client.connect(
                        **configuration, data_converter=data_converter, runtime=runtime
                    )
                    await client.workflow_service.describe_namespace(
                        DescribeNamespaceRequest(namespace=namespace)
                    )
                except RuntimeError as error:  # what the SDK raises where nothing answers
                    reason = error
                except RPCError as error:
                    if error.status == RPCStatusCode.PERMISSION_DENIED:
                        return client  # may use the namespace, may not describe it
                    reason = error
                except ValueError as error:
                    raise UsageError(f"{address!r} is no address: {error}") from error
                else:
                    return client
                await asyncio.sleep(RETRY_SECONDS)
    except TimeoutError as error:
        if isinstance(reason, RPCError) and reason.status == RPCStatusCode.NOT_FOUND:
            what = f"the Temporal service at {address} has no namespace {namespace!r}"
        else:
            what = f"no Temporal service answers at {address} (tried for {seconds:.0f} s)"
        raise TemporalUnavailableError(
            f"{what}. Start one with `temporal server start-dev`, correct --address, --profile or "
            "the TEMPORAL_… variables, or leave them out to use the embedded server."
            + (f"\nLast answer: {reason}" if reason else "")
        ) from (reason or error)


@asynccontextmanager
async def _mapped(address: str) -> AsyncIterator[None]:
    try:
        yield
    except RPCError as error:
        if error.status not in _UNREACHABLE:
            raise
        raise TemporalUnavailableError(
            f"the Temporal service at {address} went away: {error.message}. What was ingested is "
            "kept; start the command again."
        ) from error


async def _keep_closed_runs(client: Client) -> None:
    """A development server forgets closed workflows after a day."""
    service = client.workflow_service
    described = await service.describe_namespace(
        DescribeNamespaceRequest(namespace=client.namespace)
    )
    if described.config.workflow_execution_retention_ttl.ToTimedelta() == EMBEDDED_RETENTION:
        return
    request = UpdateNamespaceRequest(namespace=client.namespace)
    request.config.workflow_execution_retention_ttl.FromTimedelta(EMBEDDED_RETENTION)
    await service.update_namespace(request)


@functools.cache
def _runtime(*, measured: bool) -> tuple[Runtime, str | None]:
    """With the address of its metrics, if they are measured.

    The SDK's core prints to stdout by itself, which belongs to results: send it to logging.
    """
    forwarding = LogForwardingConfig(logger=logging.getLogger("temporalio.core"))
    logs = LoggingConfig(
        filter=TelemetryFilter(core_level="WARN", other_level="ERROR"), forwarding=forwarding
    )
    telemetry = TelemetryConfig(logging=logs)
    return measured_runtime(telemetry) if measured else (Runtime(telemetry=telemetry), None)
