"""--config, --state-dir and --debug: before or after the command, from the environment."""

from __future__ import annotations

import pytest


@pytest.fixture
def fired_into(program):
    """Fires with some options from an empty folder, and says where the EventLog came to lie."""

    def run(*arguments, **environment):
        folder = program.folder.parent / "elsewhere"
        folder.mkdir()
        ran = program(*arguments, cwd=folder, **environment)
        assert ran.code == 0, ran.err
        parent = program.folder.parent
        [log] = parent.rglob("events.sqlite")
        return str(log.parent.relative_to(parent))

    return run


def test_before_the_command(fired_into, program):
    manifest = str(program.folder / "harn.toml")

    assert fired_into("--config", manifest, "--state-dir", "s", "fire", "broken") == "elsewhere/s"


def test_after_the_command(fired_into, program):
    manifest = str(program.folder / "harn.toml")

    assert fired_into("fire", "broken", "--manifest", manifest, "--state-dir=s") == "elsewhere/s"


def test_the_one_after_the_command_wins(fired_into, program):
    manifest = str(program.folder / "harn.toml")

    found = fired_into("--config", "no", "--state-dir", "a", "fire", "broken", "--config", manifest)

    assert found == "elsewhere/a"


def test_from_the_environment(fired_into, program):
    found = fired_into(
        "fire",
        "broken",
        HARN_ORCHESTRATOR_MANIFEST=str(program.folder / "harn.toml"),
        HARN_ORCHESTRATOR_STATE_DIR="from-env",
    )

    assert found == "elsewhere/from-env"


def test_an_option_wins_over_the_environment(fired_into, program):
    found = fired_into(
        "--state-dir",
        "said",
        "fire",
        "broken",
        HARN_ORCHESTRATOR_MANIFEST=str(program.folder / "harn.toml"),
        HARN_ORCHESTRATOR_STATE_DIR="from-env",
    )

    assert found == "elsewhere/said"


def test_the_defaults(program):
    assert program("fire", "broken").code == 0
    assert (program.folder / ".harn/orchestrator/events.sqlite").is_file()


def test_between_a_group_and_its_command(program):
    assert program("fire", "broken", "--state-dir", "s").code == 0

    ran = program("trigger", "--state-dir", "s", "ls", "--json")

    assert ran.code == 0, ran.err
    assert {each["trigger_id"] for each in ran.json["triggers"]} >= {"broken"}
