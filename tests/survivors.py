"""Ends what a test run has started, once that run was killed and could not do so itself.

Run by tests/conftest.py as `survivors.py MARK`, in a session of its own. MARK is a variable and its
value that every process of the run inherits. The run holds the other end of stdin: "done" on it is
an orderly end, and nothing is ended here.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path


def main() -> None:
    mark = sys.argv[1].encode()
    if sys.stdin.read() == "done":
        return
    for _ in range(3):  # one may have started another meanwhile
        for pid in _marked(mark):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _marked(mark: bytes) -> list[int]:
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        pid = int(environment.parent.name)
        with suppress(OSError):  # it has ended meanwhile, or is another user's
            if pid != os.getpid() and mark in environment.read_bytes().split(b"\0"):
                found.append(pid)
    return found


main()
