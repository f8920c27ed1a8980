"""The detached process that keeps one embedded server running while anyone uses it.

It belongs to nobody: when it can lock clients.lock exclusively, every client is gone, however it
ended, and the server is stopped. A server that dies while clients live is started again on the
same ports, so their connections recover.

Run as `python -m harn_temporal.temporal.supervisor STATE_DIR BINARY`. Prints one line of JSON on
stdout, `{}` once the server listens or `{"error": "…"}`, and closes it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType

from harn_temporal.errors import TemporalUnavailableError
from harn_temporal.temporal.embedded_files import EmbeddedFiles, ServerInfo
from harn_temporal.temporal.locks import LockFile
from harn_temporal.temporal.server_process import start_server, stop_server

POLL_SECONDS = 0.1
LOCK_SECONDS = 2.0
RESTARTS = 3
RESTART_WINDOW_SECONDS = 60.0


class Supervisor:
    def __init__(self, files: EmbeddedFiles, binary: Path) -> None:
        self._files = files
        self._binary = binary
        self._told_to_stop = False
        self._restarts: list[float] = []

    def run(self) -> None:
        """Serve until the last client is gone. Raises TemporalUnavailableError before `{}` only."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        wanted = self._files.read_info()  # left by a supervisor that was killed
        with (
            LockFile(self._files.clients_lock) as clients,
            LockFile(self._files.supervisor_lock) as own,
        ):
            self._lock(own)
            self._files.drop_info()
            process, info = start_server(self._files, self._binary, wanted)
            self._files.write_info(info)
            _report({})
            process = self._watch(clients, process, info)
            # Who comes next waits for clients.lock, and must then find nothing of ours.
            self._files.drop_info()
            stop_server(process)
            own.close()

    def _lock(self, own: LockFile) -> None:
        deadline = time.monotonic() + LOCK_SECONDS  # a reader may probe it for a moment
        while not own.try_exclusive():
            if time.monotonic() > deadline:
                raise TemporalUnavailableError(
                    f"another supervisor holds {self._files.supervisor_lock}"
                )
            time.sleep(POLL_SECONDS)
        own.write_pid()

    def _watch(
        self, clients: LockFile, process: subprocess.Popen[bytes], info: ServerInfo
    ) -> subprocess.Popen[bytes]:
        while not self._told_to_stop and not clients.try_exclusive():
            if process.poll() is not None:
                if not self._may_restart():
                    break
                try:
                    process, info = start_server(self._files, self._binary, info)
                except TemporalUnavailableError as error:
                    self._note(str(error))
                    break
                self._files.write_info(info)
            time.sleep(POLL_SECONDS)
        return process

    def _may_restart(self) -> bool:
        now = time.monotonic()
        self._restarts = [at for at in self._restarts if now - at < RESTART_WINDOW_SECONDS]
        if len(self._restarts) >= RESTARTS:
            self._note(f"the server died {RESTARTS + 1} times within a minute; giving up")
            return False
        self._restarts.append(now)
        return True

    def _note(self, text: str) -> None:
        print(f"harn-temporal supervisor: {text}", file=sys.stderr, flush=True)  # noqa: T201 - stderr is server.log

    def _stop(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - signal's shape
        self._told_to_stop = True


def _report(answer: dict[str, str]) -> None:
    """Say how the start went, and let go of stdout, for which the starting client waits."""
    with suppress(BrokenPipeError):  # the client may be gone; clients.lock says who is left
        print(json.dumps(answer), flush=True)  # noqa: T201 - the protocol with the client
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def main() -> None:
    if os.fork():  # the parent returns at once, so that no client ever has to reap a supervisor
        os._exit(0)
    try:
        Supervisor(EmbeddedFiles(Path(sys.argv[1])), Path(sys.argv[2])).run()
    except TemporalUnavailableError as error:
        _report({"error": str(error)})
    os._exit(0)


if __name__ == "__main__":
    main()
