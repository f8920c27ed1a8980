"""Advisory locks on files (`flock`). The kernel releases them, however a process ends.

A lock file is never deleted: a lock on a deleted file would exclude nobody.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self


class LockFile:
    """An open lock file. Closing it gives up what it holds, unless a child inherited `fd`."""

    def __init__(self, path: Path, flags: int = os.O_RDWR | os.O_CREAT) -> None:
        self.fd = os.open(path, flags | os.O_CLOEXEC, 0o600)

    def try_exclusive(self) -> bool:
        return self._try(fcntl.LOCK_EX)

    def try_shared(self) -> bool:
        return self._try(fcntl.LOCK_SH)

    def _try(self, operation: int) -> bool:
        try:
            fcntl.flock(self.fd, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def write_pid(self) -> None:
        """Make the pid of this process the file's content: it names who to end."""
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, str(os.getpid()).encode("ascii"), 0)

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def is_held(path: Path) -> bool:
    """Whether some process holds the lock exclusively just now. Asking writes nothing."""
    try:
        with LockFile(path, os.O_RDONLY) as probe:
            return not probe.try_shared()
    except (FileNotFoundError, NotADirectoryError):
        return False
