"""Examples that have tests of their own: they are run as their readers run them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
TESTED = sorted({path.parent.name for path in EXAMPLES.glob("*/test_*.py")})


def test_there_are_some() -> None:
    assert "testing-handlers" in TESTED


@pytest.mark.parametrize("name", TESTED)
def test_the_tests_of_an_example_pass(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    shutil.copytree(EXAMPLES / name, folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    plain = ["-q", "-W", "error", "-p", "no:cacheprovider", "-p", "no:asyncio"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plain],
        cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d+ passed", done.stdout)
    assert not re.search(r"skipped|failed|error", done.stdout)
