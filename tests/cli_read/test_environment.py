"""Variables that cannot be: each command that would use one says which, and what may be there."""

from __future__ import annotations

from typing import Any

import pytest

from harn_temporal.cli.app import COMMANDS, load_command

LINES = [
    ("up",),
    ("worker",),
    ("fire", "triage"),
    ("ingest", "--provider", "github", "--kind", "ping"),
    ("queue", "ls"),
    ("queue", "jobs", "q"),
    ("queue", "enqueue", "q", "triage"),
    ("queue", "drain", "q"),
    ("queue", "release", "q", "1"),
    ("queue", "pause", "q"),
    ("queue", "resume", "q"),
    ("queue", "purge", "q", "--confirm"),
    ("queue",),
    ("gate", "ls"),
    ("gate", "show", "g"),
    ("gate", "release", "g", "--all"),
    ("gate",),
    ("trigger", "ls"),
    ("trigger", "show", "triage"),
    ("trigger", "cancel", "e"),
    ("trigger", "replay", "e"),
    ("dlq", "ls"),
    ("dlq", "show", "d"),
    ("dlq", "replay", "d"),
    ("dlq", "purge", "d"),
    ("dlq", "export", "d"),
    ("log", "topics"),
    ("log", "read", "t"),
    ("log", "tail"),
    ("log", "verify"),
    ("log", "rebuild"),
    ("a2a", "probe", "a2a://127.0.0.1:1/agent"),
    ("recover", "--dry-run"),
    ("graph", "e"),
    ("inspect",),
    ("metrics",),
    ("doctor",),
]
NEEDS_MANIFEST = [("queue", "enqueue"), ("queue", "drain")]
OF_STORE = ("queue", "gate", "trigger", "dlq", "log", "graph", "inspect", "metrics")


def test_the_lines_have_every_command() -> None:
    there = set()
    for name in COMMANDS:
        below = getattr(load_command(name), "commands", {})
        there |= {(name, each) for each in below} or {(name,)}
    assert there <= {line[:length] for line in LINES for length in (1, 2)}


@pytest.mark.parametrize("line", LINES, ids=" ".join)
@pytest.mark.parametrize(
    ("variable", "allowed"),
    [
        ("HARN_ORCHESTRATOR_LOG_LEVEL", "it is one of debug, info, warning, error"),
        ("HARN_ORCHESTRATOR_LOG_FORMAT", "it is one of text, json, pretty"),
    ],
)
def test_a_word_that_is_none(
    program: Any, filled: Any, line: tuple[str, ...], variable: str, allowed: str
) -> None:
    (program.state_dir.parent / "harn.toml").write_text('[package]\nname = "triage"\n')
    ran = program(*line, **{variable: "loud"})
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"error: {variable} is 'loud'; {allowed}\n"


def test_an_option_goes_before_the_word(program: Any, filled: Any) -> None:
    said = program("queue", "ls", "--log-level", "info", HARN_ORCHESTRATOR_LOG_LEVEL="loud")
    assert said.code == 0
    assert program("trigger", "ls", HARN_ORCHESTRATOR_LOG_FORMAT="pretty").code == 0  # Harn's word


@pytest.mark.parametrize(
    "line",
    [each for each in LINES if each[0] in OF_STORE and each[:2] not in NEEDS_MANIFEST],
    ids=" ".join,
)
def test_a_backend_that_is_none(program: Any, line: tuple[str, ...]) -> None:
    ran = program(*line, HARN_EVENT_LOG_BACKEND="postgres")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "error: HARN_EVENT_LOG_BACKEND is 'postgres'; use one of: sqlite, file, memory\n"
    )


@pytest.mark.parametrize("line", [("metrics",), ("queue", "ls"), ("queue", "jobs", "q")])
def test_a_variable_of_the_scheduler_that_counts_as_unset(
    program: Any, filled: Any, line: tuple[str, ...]
) -> None:
    ran = program(*line, HARN_SCHEDULER_STRATEGY="fairest")
    assert ran.err.startswith("warning: HARN_SCHEDULER_STRATEGY: 'fairest' is ignored; use one of ")
