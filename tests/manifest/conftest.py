from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from harn_temporal.errors import ManifestError
from harn_temporal.manifest import Manifest, load_manifest

HANDLERS = """
def run(event):
    return 1

async def decide(event, context):
    return True

def three(a, b, c):
    return None
"""

TRIGGER = """
[[triggers]]
id = "a"
kind = "webhook"
provider = "github"
match = { events = ["issues.opened"] }
handler = "run"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lib.py").write_text(HANDLERS)
    return tmp_path


@pytest.fixture
def load(folder: Path) -> Callable[[str], Manifest]:
    """Load a manifest of package `demo` that holds the text given."""

    def loaded(text: str) -> Manifest:
        path = folder / "harn.toml"
        path.write_text('[package]\nname = "demo"\n' + textwrap.dedent(text))
        return load_manifest(path)

    return loaded


@pytest.fixture
def problems(load: Callable[[str], Manifest]) -> Callable[[str], tuple[str, ...]]:
    """The problems of such a manifest; none is a failure."""

    def found(text: str) -> tuple[str, ...]:
        with pytest.raises(ManifestError) as caught:
            load(text)
        return caught.value.problems

    return found


@pytest.fixture
def of_trigger(problems: Callable[[str], tuple[str, ...]]) -> Callable[..., tuple[str, ...]]:
    """The problems of a trigger with a few more lines, without the words they all begin with."""

    def found(lines: str, **without: bool) -> tuple[str, ...]:
        kept = [
            line
            for line in TRIGGER.splitlines()
            if not any(line.startswith(f"{key} =") for key in without)
        ]
        return tuple(
            problem.removeprefix('harn.toml, [[triggers]] #1 "a", ')
            for problem in problems("\n".join([*kept, textwrap.dedent(lines)]))
        )

    return found


@pytest.fixture
def one(load: Callable[[str], Manifest]) -> Callable[[str], Manifest]:
    """A manifest of one trigger with a few more lines."""
    return lambda lines: load(TRIGGER + textwrap.dedent(lines))
