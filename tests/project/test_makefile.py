"""The Makefile explains itself, and what it runs exists."""

import re
import subprocess
from pathlib import Path

import pytest


@pytest.fixture
def makefile(root: Path) -> str:
    return (root / "Makefile").read_text()


def test_make_lists_its_targets(root: Path) -> None:
    done = subprocess.run(["make", "-s"], cwd=root, capture_output=True, text=True, check=True)
    targets = re.findall(r"^  make (\w+) +\S", done.stdout, re.MULTILINE)
    assert targets == ["help", "demo", "test", "check", "soak", "bench", "fmt", "clean"]


def test_recipes_name_files_that_exist(root: Path, makefile: str) -> None:
    named = re.findall(r"[\w./-]+\.(?:sh|py|txt|toml)\b", makefile)
    assert named
    assert [name for name in named if not (root / name).is_file()] == []


def test_soak_finds_tests(root: Path) -> None:
    marked = [path for path in (root / "tests").rglob("*.py") if "mark.soak" in path.read_text()]
    assert [path for path in marked if path != Path(__file__)]


def test_ci_runs_what_a_developer_runs(root: Path) -> None:
    script = root / ".ci/run"
    assert script.stat().st_mode & 0o111
    assert script.read_text().splitlines()[-1].endswith(" check")
    subprocess.run(["bash", "-n", script], check=True)


def test_constraints_name_versions_only(root: Path) -> None:
    lines = (root / "constraints.txt").read_text().splitlines()
    pinned = [line for line in lines if not line.startswith("#")]
    assert [line for line in pinned if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []
