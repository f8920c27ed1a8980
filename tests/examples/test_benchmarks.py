"""The benchmark of dispatches runs, on sizes that measure nothing, and leaves no server behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FIGURES = ["per_second", "p50_ms", "p99_ms", "worker_cpu_ms", "server_cpu_ms"]


def test_dispatches_against_raw_workflows(tmp_path: Path) -> None:
    arguments = ["--quick", "--profile", "--size", "4", "--rounds", "1", "--waiting", "5"]
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks/dispatch.py"), *arguments],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True, text=True, check=False, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    for part in ("20_in_flight", "one_at_a_time"):
        for kind in ("raw", "dispatch", "ratio"):
            assert list(figures[part][kind]) == FIGURES
            assert figures[part][kind]["p50_ms"] > 0
    events = figures["history_events"]  # more where a busy machine lets a task time out
    assert (events["raw"] >= 11, events["dispatch"] >= 12) == (True, True)
    assert figures["ingestion_per_second"] > 0
    assert figures["pump_per_second"] > 0
    assert figures["waiting_in_a_retry"]["dispatches"] == 5
    assert figures["profile"]["samples"] > 0
    servers = [path.name for path in Path("/proc").glob("[0-9]*") if _is_in(path, tmp_path)]
    assert servers == []


def test_dispatches_through_gates(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks/gated_dispatch.py"), "--quick"],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True, text=True, check=False, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    gated = [kind for kind in figures["a_dispatch"] if kind != "ungated"]
    assert list(figures["of_ungated"]) == gated
    assert len(gated) == 8
    assert min(each["per_second"] for each in figures["a_dispatch"].values()) > 0
    # The gates are asked in an activity of which the history keeps one event.
    events = {kind: each["history_events"] for kind, each in figures["a_dispatch"].items()}
    assert (events["ungated"] >= 12, min(events[kind] for kind in gated) >= 13) == (True, True)


def _is_in(process: Path, folder: Path) -> bool:
    try:
        return (process / "cwd").readlink().is_relative_to(folder)
    except OSError:  # it has ended, or is another user's
        return False
