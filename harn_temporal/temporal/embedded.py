"""The embedded Temporal server of a state dir: shared by all who use it, gone after the last one.

A client holds clients.lock shared for as long as it uses the server. What runs is told by locks
alone (see embedded_files), so no crash leaves anything that blocks the next command: a server
whose supervisor was killed is ended by whoever comes next, or by the last client that leaves.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from harn_temporal.errors import TemporalUnavailableError
from harn_temporal.temporal.embedded_files import EmbeddedFiles, ServerInfo
from harn_temporal.temporal.locks import LockFile, is_held
from harn_temporal.temporal.server_process import end_orphan, find_binary, signal_server

JOIN_SECONDS = 120.0
"""Bound on joining: it covers another command's start, a slow stop, and our own start."""

POLL_SECONDS = 0.02


@asynccontextmanager
async def embedded_server(state_dir: Path) -> AsyncIterator[ServerInfo]:
    """Use the embedded server of `state_dir`, started where it does not run.

    Raises TemporalUnavailableError, with the end of the server's log where it does not come up.
    """
    files = EmbeddedFiles(state_dir)
    try:
        files.directory.mkdir(parents=True, exist_ok=True)
        clients = LockFile(files.clients_lock)
    except OSError as error:
        raise TemporalUnavailableError(
            f"cannot keep an embedded Temporal server in {files.directory}: "
            f"{error.strerror or error}. Choose another place with --state-dir."
        ) from error
    try:
        with clients:
            yield await _join(files, clients)
    finally:
        _end_orphan_as_last_one_out(files)


def running_server(state_dir: Path) -> ServerInfo | None:
    """Where the embedded server of `state_dir` answers, or None. Starts and holds nothing."""
    files = EmbeddedFiles(state_dir)
    return files.read_info() if is_held(files.supervisor_lock) else None


async def _join(files: EmbeddedFiles, clients: LockFile) -> ServerInfo:
    try:
        async with asyncio.timeout(JOIN_SECONDS):
            with LockFile(files.start_lock) as start:
                await _until(start.try_exclusive)
                # Waits while a supervisor stops its server; from here on none will.
                await _until(clients.try_shared)
                return await _supervised(files) or await _start(files)
    except TimeoutError as error:
        raise TemporalUnavailableError(
            f"the embedded Temporal server in {files.directory} did not become ready within "
            f"{JOIN_SECONDS:.0f} s: another process holds a lock there. `fuser -v "
            f"{files.directory}/*.lock` shows which."
        ) from error


async def _supervised(files: EmbeddedFiles) -> ServerInfo | None:
    """The server of a live supervisor, waited for while it starts; None without supervisor."""
    while is_held(files.supervisor_lock):
        info = files.read_info()
        if info is not None:
            return info
        await asyncio.sleep(POLL_SECONDS)
    return None


async def _start(files: EmbeddedFiles) -> ServerInfo:
    await asyncio.to_thread(end_orphan, files)
    binary = find_binary()
    log = files.open_log(anew=True)
    with open(log, "ab") as stderr:  # noqa: ASYNC230, PTH123 - a descriptor that is open already
        launcher = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "harn_temporal.temporal.supervisor"),
            *(str(files.state_dir), str(binary)),
            cwd=files.state_dir,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,  # Ctrl-C in our terminal is not for the supervisor
        )
    output, _ = await launcher.communicate()
    try:
        answer = json.loads(output)
    except ValueError as error:
        raise TemporalUnavailableError(
            f"the supervisor of the embedded Temporal server ended early. The end of {files.log}:\n"
            f"{files.log_tail()}"
        ) from error
    if "error" in answer:
        raise TemporalUnavailableError(answer["error"])
    info = await _supervised(files)
    if info is None:
        raise TemporalUnavailableError(
            f"the embedded Temporal server ended as soon as it ran. The end of {files.log}:\n"
            f"{files.log_tail()}"
        )
    return info


def _end_orphan_as_last_one_out(files: EmbeddedFiles) -> None:
    """Where the supervisor was killed, nobody else would stop the server."""
    with LockFile(files.clients_lock) as clients, LockFile(files.supervisor_lock) as supervisor:
        if clients.try_exclusive() and supervisor.try_exclusive() and is_held(files.server_lock):
            signal_server(files, signal.SIGTERM)


async def _until(fact: Callable[[], bool]) -> None:
    while not fact():  # noqa: ASYNC110 - a file lock tells nobody when it becomes free
        await asyncio.sleep(POLL_SECONDS)
