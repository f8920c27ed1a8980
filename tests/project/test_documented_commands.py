"""The commands of README.md and docs/cli.md are run as they are written.

Comments that no reader sees mark the blocks, in the order of the page:

<!-- file: NAME -->        the block is put into that file
<!-- tested -->            the block is run, and exits 0; or `tested: exit N`
<!-- tested: background --> the block is one command that runs, says it is ready, and is stopped
                           with SIGTERM at the end of the page
<!-- prints -->            what the block before it printed has this shape
"""

import json
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harn_temporal.cli.app import COMMANDS

MARKED = re.compile(
    r"<!-- (file|tested|prints)(?:: (.+?))? -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    kind: str
    argument: str
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(*found) for found in MARKED.findall(page.read_text())]


class Shell:
    """A reader's terminal, and a second one for what runs in the background."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._background: list[subprocess.Popen[str]] = []

    def follow(self, block: Block, printed: str) -> str:
        """Do what a block says; `printed` is what the one before it printed."""
        if block.kind == "file":
            (self._folder / block.argument).write_text(block.text)
        elif block.kind == "prints":
            assert_shape(printed, json.loads(block.text))
        elif block.argument == "background":
            self._start(block.text)
        else:
            return self._run(block)
        return ""

    def _run(self, block: Block) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.text],
            cwd=self._folder, env=self._environment, capture_output=True, text=True,
            check=False, timeout=90,
        )  # fmt: skip
        expected = int(block.argument.removeprefix("exit ") or 0)
        assert done.returncode == expected, block.text + done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout

    def _start(self, command: str) -> None:
        process = subprocess.Popen(
            command.split(),
            cwd=self._folder, env=self._environment, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._background.append(process)
        assert process.stdout is not None
        said = ""
        while not re.search(r"^Ready", said, re.MULTILINE):
            line = process.stdout.readline()
            assert line, f"{command} ended early:\n{said}"
            said += line

    def stop(self) -> None:
        for process in self._background:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
            assert process.returncode == 0

    def kill(self) -> None:
        for process in self._background:
            process.kill()
            process.communicate()


@pytest.fixture
def shell(tmp_path: Path, user_environment: dict[str, str]) -> Iterator[Shell]:
    shell = Shell(tmp_path, user_environment)
    yield shell
    shell.kill()


def follow_page(shell: Shell, page: Path) -> None:
    printed = ""
    for block in blocks(page):
        printed = shell.follow(block, printed)
    shell.stop()


def test_readme(root: Path, shell: Shell) -> None:
    follow_page(shell, root / "README.md")


def test_command_line(root: Path, shell: Shell, tmp_path: Path) -> None:
    shutil.copytree(
        root / "examples/github-triage", tmp_path, dirs_exist_ok=True,
        ignore=shutil.ignore_patterns(".harn", "__pycache__"),
    )  # fmt: skip
    follow_page(shell, root / "docs/cli.md")


def assert_shape(printed: str, expected: Any) -> None:
    decoder = json.JSONDecoder()
    documents = []
    rest = printed.strip()
    while rest:
        document, end = decoder.raw_decode(rest)
        documents.append(document)
        rest = rest[end:].lstrip()
    assert documents
    for document in documents:
        _compare(document, expected, "$")


def _compare(found: Any, expected: Any, place: str) -> None:
    """Keys and types are the same. A null, `{}` or `[]` on the page stands for whatever it is."""
    if expected is None or found is None or expected in ({}, []):
        return
    assert type(found) is type(expected), place
    if isinstance(expected, dict):
        assert list(found) == list(expected), place
        for name, value in expected.items():
            _compare(found[name], value, f"{place}.{name}")
    elif isinstance(expected, list):
        assert found, place
        for index, value in enumerate(found):
            _compare(value, expected[0], f"{place}[{index}]")


def test_every_command_has_a_section_and_runs(root: Path) -> None:
    page = (root / "docs/cli.md").read_text()
    assert sorted(re.findall(r"^## (\S+)$", page, re.MULTILINE)) == sorted(COMMANDS)
    run = "\n".join(b.text for b in blocks(root / "docs/cli.md") if b.kind == "tested")
    subcommands = ["trigger ls", "trigger show", "dlq ls", "dlq show", "log topics", "log read"]
    subcommands += ["trigger cancel", "trigger replay", "dlq replay", "dlq purge", "dlq export"]
    subcommands += [
        "queue enqueue",
        "queue ls",
        "queue jobs",
        "queue pause",
        "queue resume",
        "queue drain",
    ]
    subcommands += [
        "queue purge",
        "log tail",
        "log verify",
        "log rebuild",
        "up",
        "ingest",
        "fire",
        "doctor",
    ]
    assert [each for each in subcommands if f"harn-temporal {each}" not in run] == []


@pytest.mark.parametrize(
    "printed", ['{"a": "x"}', '{"a": 1, "b": [{"c": 1}]}', '{"a": "x", "b": []}', ""]
)
def test_another_shape_is_noticed(printed: str) -> None:
    assert_shape('{"a": "x", "b": [{"c": null}, {"c": 2}]}', {"a": "y", "b": [{"c": 1}]})
    with pytest.raises(AssertionError):
        assert_shape(printed, {"a": "y", "b": [{"c": 1}]})
