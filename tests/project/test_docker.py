"""Images cannot be built here; what the files name is checked against what exists."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

BIN = Path(sys.executable).parent


def help_of(*command: str) -> str:
    done = subprocess.run(
        [BIN / command[0], *command[1:], "--help"], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture
def dockerfile(root: Path) -> str:
    return (root / "docker/Dockerfile").read_text()


@pytest.fixture
def services(root: Path) -> dict[str, Any]:
    return yaml.safe_load((root / "docker/compose.yaml").read_text())["services"]


def instruction(dockerfile: str, name: str) -> list[str]:
    (found,) = re.findall(rf"^{name} (\[.*\])$", dockerfile, re.MULTILINE)
    return json.loads(found)


def test_image_runs_a_command_that_exists(dockerfile: str) -> None:
    command = instruction(dockerfile, "ENTRYPOINT") + instruction(dockerfile, "CMD")
    assert command == ["harn-temporal", "worker"]
    assert "Usage: harn-temporal worker" in help_of(*command)


def test_image_copies_what_exists(root: Path, dockerfile: str) -> None:
    (constraints,) = re.findall(r"^COPY (?!\. )(\S+) ", dockerfile, re.MULTILINE)
    assert (root / constraints).is_file()


def test_image_sets_variables_the_program_reads(dockerfile: str) -> None:
    names = re.findall(r"HARN_\w+", dockerfile)
    assert names == ["HARN_ORCHESTRATOR_MANIFEST", "HARN_ORCHESTRATOR_STATE_DIR"]
    usage = help_of("harn-temporal")
    assert [name for name in names if name not in usage] == []


def test_compose_server_is_given_options_it_has(services: dict[str, Any]) -> None:
    command = services["temporal"]["command"]
    assert command[:2] == ["server", "start-dev"]
    usage = help_of("temporal", *command[:2])
    options = [option.partition("=")[0] for option in command[2:]]
    assert [option for option in options if f"{option} " not in usage] == []


def test_compose_worker_finds_the_server_and_its_manifest(
    root: Path, services: dict[str, Any]
) -> None:
    worker = services["worker"]
    host, _, port = worker["environment"]["TEMPORAL_ADDRESS"].partition(":")
    assert host in services
    assert any(published.endswith(f":{port}") for published in services[host]["ports"])
    source = worker["volumes"][0].split(":")[0]
    assert (root / "docker" / source / "harn.toml").is_file()
    assert (root / "docker" / worker["build"]["context"] / worker["build"]["dockerfile"]).is_file()


def test_documented_commands_name_the_compose_file(root: Path) -> None:
    path = root / "docker/compose.yaml"
    commands = re.findall(r"^#   (docker compose .*)$", path.read_text(), re.MULTILINE)
    assert [shlex.split(command)[3] for command in commands] == ["docker/compose.yaml"] * 2
