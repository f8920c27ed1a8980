"""Help answers at once, and shows how a command is used."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from harn_temporal.cli.app import COMMANDS

HEAVY = ("temporalio", "cel", "jmespath", "harn_temporal.eventlog", "harn_temporal.contracts")

LOADED = """
import json, sys
from harn_temporal.entry import run
code = run(sys.argv[1:])
print(json.dumps({"code": code, "modules": sorted(sys.modules)}), file=sys.stderr)
"""


def loaded_by(*arguments):
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments], capture_output=True, text=True, check=True
    )
    return json.loads(done.stderr.splitlines()[-1])


def test_help_lists_every_command_and_imports_none_of_them(program):
    ran = program("--help")

    assert ran.code == 0
    assert ran.err == ""
    for name in COMMANDS:
        assert re.search(rf"^│ {name}\s", ran.out, re.MULTILINE), name
    found = loaded_by("--help")
    assert found["code"] == 0
    heavy = [name for name in found["modules"] if name.startswith((*HEAVY, "pydantic"))]
    assert heavy == []


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_shows_an_example_and_the_common_options(program, name):
    ran = program(name, "--help")

    assert ran.code == 0
    assert ran.err == ""
    subcommands = re.findall(r"^│ (\w+) ", ran.out.partition("Commands")[2], re.MULTILINE)
    if subcommands:
        for subcommand in subcommands:
            assert (
                f"Example: harn-temporal {name} {subcommand}"
                in program(name, subcommand, "--help").out
            )
    else:
        assert f"Example: harn-temporal {name}" in ran.out
    for option in ("--config", "--manifest", "--state-dir", "--debug"):
        assert option in ran.out


@pytest.mark.parametrize("name", ["up", "worker", "fire", "ingest"])
def test_help_of_a_command_imports_no_temporal(name):
    found = loaded_by(name, "--help")

    heavy = [module for module in found["modules"] if module.startswith(HEAVY)]
    assert heavy == []


def test_no_command_shows_the_help_and_is_wrong_usage(program):
    ran = program()

    assert ran.code == 2
    assert "Usage: harn-temporal" in ran.out


def test_version(program):
    ran = program("--version")

    assert ran.code == 0
    assert re.fullmatch(r"harn-temporal \d+\.\d+\.\d+\n", ran.out)
