"""docs/telemetry.md lists every metric, span and log event, and nothing else."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

from harn_temporal.telemetry import tracing
from harn_temporal.telemetry.families import FAMILIES, Source
from harn_temporal.telemetry.log_fields import _EVENT

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/telemetry.md").read_text()
LEVELS = ("debug", "info", "warning", "error", "exception", "critical")


def rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def section(start: str, end: str) -> str:
    return PAGE.partition(start)[2].partition(end)[0]


def test_every_metric_is_on_the_page_as_it_is():
    for source, start, end in (
        (Source.PROCESS, "### Of a process", "### Of the store"),
        (Source.STORE, "### Of the store", "### How many"),
    ):
        listed = {
            name.strip("`"): (kind, tuple(re.findall(r"`(\w+)`", labels)), what)
            for name, kind, labels, what in rows(section(start, end))
        }
        assert listed == {
            each.name: (each.kind, each.labels, each.help)
            for each in FAMILIES
            if each.source is source
        }


def test_every_span_and_its_events_are_on_the_page():
    listed = [[name.strip("`"), what] for name, what in rows(section("| span |", "| event on"))]
    assert listed == [list(each) for each in tracing.SPANS.items()]
    told = rows(section("| event on `harn.attempt` |", "\n\nAn event"))
    assert [[name.strip("`"), what] for name, what in told] == [
        list(each) for each in tracing.EVENTS.items()
    ]


def test_every_log_event_is_on_the_page_with_its_levels():
    listed = {
        name.strip("`"): set(levels.split(", "))
        for name, levels, _ in rows(section("| event | level |", "\x00"))
    }
    assert listed == logged()


def test_every_log_record_of_ours_has_a_name():
    assert [name for name in logged() if not _EVENT.fullmatch(name)] == []


def test_every_span_is_made_somewhere_by_its_name():
    made = set()
    for path in sources():
        made.update(re.findall(r"tracing\.([A-Z]+)\b", path.read_text()))
    named = vars(tracing).items()
    names = {name for name, value in named if isinstance(value, str) and value in tracing.SPANS}
    assert len(names) == len(tracing.SPANS)
    assert names <= made


def logged() -> dict[str, set[str]]:
    """The first argument of each call of a logger, with the levels it is called with."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr in LEVELS and "logger" in ast.unparse(node.func.value).lower():
                first = node.args[0]
                assert isinstance(first, ast.Constant), f"{path}:{node.lineno}"
                found[first.value].add(node.func.attr)
    return found


def sources() -> list[Path]:
    folders = ("harn_temporal", "activities", "workflows")
    return [
        path
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not path.is_relative_to(ROOT / "harn_temporal/activities")
        and not path.is_relative_to(ROOT / "harn_temporal/workflows")
    ]


def test_every_family_is_asserted_by_value():
    tests = [path.read_text() for path in sorted((ROOT / "tests/telemetry").glob("test_*s.py"))]
    text = "\n".join(tests)
    short = {each.name.removeprefix("harn_trigger_").removesuffix("_seconds") for each in FAMILIES}
    assert [name for name in sorted(short) if f"{name}" not in text] == []
