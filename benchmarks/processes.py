"""What processes use: processor time, memory, and where this one spends its time."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")
PAUSE_SECONDS = 0.005
DEPTH = 60

IDLE = {"select", "wait", "_worker", "poll", "acquire", "get", "_wait_for_tstate_lock", "_sample"}
"""Functions at whose innermost frame a thread waits."""


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def rss_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return round(int(line.split()[1]) / 1024, 1)
    return 0.0


class Sampler:
    """Looks at what every thread of this process does, 200 times a second.

    `busy` counts samples of functions and of all that called them, once per stack; `own` those of
    the innermost function only.
    """

    def __init__(self) -> None:
        self.samples = 0
        self.own: Counter[str] = Counter()
        self.busy: Counter[str] = Counter()

    @contextmanager
    def recording(self) -> Iterator[None]:
        stop = threading.Event()
        thread = threading.Thread(target=self._run, args=(stop,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def report(self, most: int = 40) -> dict[str, Any]:
        return {
            "samples": self.samples,
            "own": dict(self.own.most_common(most)),
            "with_callees": dict(self.busy.most_common(most)),
        }

    def _run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self._sample()
            time.sleep(PAUSE_SECONDS)

    def _sample(self) -> None:
        self.samples += 1
        for frame in sys._current_frames().values():  # noqa: SLF001 - what debuggers use
            if frame.f_code.co_name in IDLE:
                continue
            names = _names(frame)
            self.own[names[0]] += 1
            self.busy.update(set(names))


def _names(frame: FrameType | None) -> list[str]:
    names = []
    while frame is not None and len(names) < DEPTH:
        file = Path(frame.f_code.co_filename)
        names.append(f"{file.parent.name}/{file.stem}:{frame.f_code.co_qualname}")
        frame = frame.f_back
    return names
