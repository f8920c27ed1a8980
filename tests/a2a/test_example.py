"""The page docs/a2a.md, followed as a reader would, in a copy of examples/a2a-reviewer."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MARKED = re.compile(
    r"<!-- (tested|result)(?:: (.+?))? -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
BOUND_S = 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The example, at a port that is free here."""
    port = str(free_port())
    shutil.copytree(ROOT / "examples/a2a-reviewer", tmp_path / "example")
    manifest = tmp_path / "example/harn.toml"
    manifest.write_text(manifest.read_text().replace("8765", port))
    (tmp_path / "port").write_text(port)
    return tmp_path / "example"


def test_the_page(folder: Path) -> None:
    port = (folder.parent / "port").read_text()
    ours = ("HARN_", "TEMPORAL_", "REVIEWER_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    blocks = MARKED.findall((ROOT / "docs/a2a.md").read_text().replace("8765", port))
    assert [kind for kind, _, _ in blocks].count("result") == 2
    agents: list[subprocess.Popen[str]] = []
    printed = ""
    try:
        for kind, argument, text in blocks:
            if kind == "result":
                assert json.loads(printed)["result"] == json.loads(text)
            elif argument == "background":
                agents.append(
                    subprocess.Popen(
                        ["bash", "-c", f"exec env {text}"], cwd=folder, env=environment, text=True
                    )
                )
                wait_for(int(port), agents[-1])
            else:
                ran = subprocess.run(
                    ["bash", "-euc", text],
                    cwd=folder,
                    env=environment,
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=BOUND_S,
                )
                assert ran.returncode == int(argument.removeprefix("exit ") or 0), ran.stderr
                assert "made-up" not in ran.stdout + ran.stderr
                printed = ran.stdout
    finally:
        for agent in agents:
            agent.kill()
            agent.wait()


def wait_for(port: int, agent: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + BOUND_S
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert agent.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
