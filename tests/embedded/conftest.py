"""Clients of an embedded server as processes of their own, which a test may end as it likes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harn_temporal.temporal.embedded_files import EmbeddedFiles
from harn_temporal.temporal.locks import is_held

CLIENT = """
import asyncio, json, sys
from pathlib import Path
from harn_temporal.temporal.embedded import embedded_server

async def main():
    async with embedded_server(Path(sys.argv[1])) as server:
        print(json.dumps({"pid": server.pid, "port": server.port}), flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


@dataclass
class HeldClient:
    process: subprocess.Popen[str]
    _joined: dict[str, int] | None = None

    @property
    def joined(self) -> dict[str, int]:
        """pid and port of the server; waits until the client has joined it."""
        if self._joined is None:
            assert self.process.stdout is not None
            self._joined = json.loads(self.process.stdout.readline())
        return self._joined

    def leave(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(30)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)


def _eventually(fact: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < deadline, "the fact did not come about"
        time.sleep(0.02)


@pytest.fixture
def eventually() -> Callable[..., None]:
    """Waits for a fact, with a bound."""
    return _eventually


@pytest.fixture
def alive() -> Callable[[int], bool]:
    def check(pid: int) -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True

    return check


@pytest.fixture
def files(tmp_path: Path) -> Iterator[EmbeddedFiles]:
    """The files of a state dir, in which nothing runs any more when the test is over."""
    files = EmbeddedFiles(tmp_path / "state")
    yield files
    if files.directory.exists():
        _eventually(lambda: not is_held(files.supervisor_lock))
        _eventually(lambda: not is_held(files.server_lock))


@pytest.fixture
def start_client(files: EmbeddedFiles) -> Iterator[Callable[..., HeldClient]]:
    """Starts a client of the server in `files`; it stays until it is told to leave."""
    started: list[HeldClient] = []

    def start() -> HeldClient:
        process = subprocess.Popen(
            [sys.executable, "-c", CLIENT, str(files.state_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(HeldClient(process))
        return started[-1]

    yield start
    for client in started:
        client.process.kill()
        client.process.wait()
        for stream in (client.process.stdin, client.process.stdout):
            stream.close()
