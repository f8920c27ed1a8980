"""A lock among processes that the system gives back when its holder dies, however it dies."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harn_temporal.errors import StoreError, StoreUnavailableError

_POLL_SECONDS = 0.005


class FileLock:
    """Exclusive; one holder at a time, within a process as well. Not reentrant."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def try_acquire(self) -> bool:
        descriptor = self._open()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except OSError as error:
            os.close(descriptor)
            raise StoreUnavailableError(
                f"cannot lock {self._path}: {error.strerror}; is its file system without locks?"
            ) from error
        self._descriptor = descriptor
        return True

    def acquire(self, seconds: float) -> None:
        """Raises StoreUnavailableError when another process held it all the time."""
        until = time.monotonic() + seconds
        while not self.try_acquire():
            if time.monotonic() >= until:
                raise StoreUnavailableError(
                    f"another process has held {self._path} for {seconds:.0f} s; "
                    "see which one does with `lsof`, and end it if it hangs"
                )
            time.sleep(_POLL_SECONDS)

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @contextmanager
    def held(self, seconds: float) -> Iterator[None]:
        self.acquire(seconds)
        try:
            yield
        finally:
            self.release()

    def _open(self) -> int:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            if isinstance(error, PermissionError) or error.errno == errno.EROFS:
                raise StoreError(
                    f"cannot use {self._path.parent} for the EventLog: {error.strerror}; "
                    "make it writable, or name another place with --state-dir, such as a copy of it"
                ) from error
            raise StoreUnavailableError(
                f"cannot open {self._path} for the EventLog: {error.strerror}; "
                "name another place with --state-dir"
            ) from error
