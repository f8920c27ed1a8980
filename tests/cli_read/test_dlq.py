import re
from dataclasses import replace
from typing import Any

import pytest

from harn_temporal.bindings import Binding, HandlerTarget
from harn_temporal.eventlog.log import Append, EventLog
from harn_temporal.registry import register

NOW_MS = 1_767_225_600_000


def idle_binding() -> Binding:
    return Binding(
        package="triage",
        trigger_id="idle",
        kind="webhook",
        provider="github",
        events=("issues.opened",),
        handler=HandlerTarget(kind="local", uri="handlers::fine"),
        fingerprint="idle",
    )


def without_age(letter: dict[str, Any]) -> dict[str, Any]:
    """The letter without how old it is today."""
    assert letter["age_ms"] > 0
    return {name: value for name, value in letter.items() if name != "age_ms"}


def entry(number: int, **fields: Any) -> Append:
    """A dead letter as Harn writes it."""
    payload = {
        "id": f"dlq_{number}",
        "event_id": f"trigger_evt_{number}",
        "binding_id": "nightly",
        "binding_version": None,
        "provider": "cron",
        "kind": "tick",
        "state": "pending",
        "error": "no route",
        "error_class": "unknown",
        "event": {"tenant_id": None},
        "retry_history": [],
    }
    return Append("trigger.dlq", "dlq_entry", payload | fields, occurred_at_ms=NOW_MS + number)


def test_lists_a_dead_letter(program: Any, filled: Any) -> None:
    listed = program("dlq", "ls", "--json").json
    (letter,) = listed["dead_letters"]
    assert list(listed) == ["dead_letters"]
    assert re.fullmatch(r"dlq_[0-9a-f-]{36}", letter["id"])
    assert without_age(letter) == {
        "id": letter["id"],
        "event_id": filled.dead.id,
        "trigger_id": "triage",
        "binding_key": "triage@v2",
        "provider": "github",
        "kind": "issues.opened",
        "tenant_id": "acme",
        "state": "pending",
        "error_class": "handler_timeout",
        "error": "10 m over",
        "attempts": 2,
        "moved_at": "2026-01-01T00:00:02.000Z",
    }


@pytest.mark.parametrize("by", ["id", "event_id"])
def test_shows_event_and_history(program: Any, filled: Any, by: str) -> None:
    (letter,) = program("dlq", "ls", "--json").json["dead_letters"]
    shown = program("dlq", "show", letter[by], "--json").json
    assert shown["event"] == filled.dead.to_json()
    assert shown["retry_history"] == [
        {"attempt": 1, "at": "2026-01-01T00:00:02.000Z", "status": "failed", "error": "boom"},
        {"attempt": 2, "at": "2026-01-01T00:00:02.000Z", "status": "timeout", "error": "10 m over"},
    ]
    rest = {k: v for k, v in shown.items() if k not in {"event", "retry_history"}}
    assert without_age(rest) == without_age(letter)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), [1, 2, 3]),
        (("--all",), [1, 2, 3, 4]),
        (("--trigger", "hourly"), [2]),
        (("--provider", "github"), [3]),
        (("--error-class", "auth_failed"), [3]),
        (("--tenant", "acme"), [2]),
        (("--tenant", "acme", "--provider", "github"), []),
        (("--older-than", "1d"), [1, 2, 3]),
        (("--newer-than", "1d"), []),
    ],
)
def test_filters(program: Any, arguments: tuple[str, ...], expected: list[int]) -> None:
    records = [
        entry(1),
        entry(2, binding_id="hourly", event={"tenant_id": "acme"}),
        entry(3, provider="github", error_class="auth_failed"),
        entry(4),
        entry(4, state="resolved"),
    ]
    program.fill(lambda log: log.append(records))
    letters = program("dlq", "ls", "--json", *arguments).json["dead_letters"]
    assert [letter["id"] for letter in letters] == [f"dlq_{number}" for number in expected]


@pytest.mark.parametrize("command", ["ls", "replay", "purge", "export"])
@pytest.mark.parametrize(
    ("option", "name", "expected"),
    [
        ("--trigger", "nighty", "no trigger 'nighty' in this store. Did you mean nightly?"),
        ("--trigger", "x", "no trigger 'x' in this store. It knows: idle, nightly"),
        ("--provider", "githb", "no provider 'githb' in this store. Did you mean github?"),
        (
            "--error-class",
            "handler-panic",
            "no error class 'handler-panic' in this store. Did you mean handler_panic",
        ),
        ("--tenant", "acmee", "no tenant 'acmee' in this store. Did you mean acme?"),
    ],
)
def test_a_name_that_the_store_does_not_know(
    program: Any, command: str, option: str, name: str, expected: str
) -> None:
    async def fill(log: EventLog) -> None:
        await register(log, "triage", [idle_binding()])
        await log.append([entry(1, event={"tenant_id": "acme"})])

    program.fill(fill)
    ran = program("dlq", command, option, name)
    assert (ran.code, ran.out) == (2, "")
    assert expected in ran.err


@pytest.mark.parametrize(
    "known",
    [
        ("--trigger", "idle"),
        ("--provider", "github"),
        ("--error-class", "budget_exhausted"),
        ("--tenant", "beta corp"),
        ("--trigger", "nightly", "--newer-than", "1d"),
    ],
)
def test_a_name_that_the_store_knows_may_have_no_dead_letters(
    program: Any, known: tuple[str, ...]
) -> None:
    async def fill(log: EventLog) -> None:
        await register(log, "triage", [idle_binding()])
        await register(log, "triage", [])  # taken out of the manifest
        await log.append([entry(1), Append("tenant.beta_corp.trigger.inbox", "note", {})])

    program.fill(fill)
    ran = program("dlq", "ls", *known)
    assert (ran.code, ran.out, ran.err) == (0, "", "No dead letters.\n")
    assert program("dlq", "replay", "--json", *known).json["items"] == []


def test_latest_record_of_a_letter_counts(program: Any) -> None:
    later = replace(entry(1, state="discarded", error="given up"), occurred_at_ms=NOW_MS + 9_000)
    program.fill(lambda log: log.append([entry(1), later]))
    (letter,) = program("dlq", "ls", "--all", "--json").json["dead_letters"]
    assert (letter["state"], letter["error"]) == ("discarded", "given up")
    assert letter["moved_at"] == "2026-01-01T00:00:00.001Z"


def test_a_record_that_cannot_be_read_is_left_out_and_said(program: Any) -> None:
    broken = Append("trigger.dlq", "dlq_entry", {"id": "dlq_0"})
    program.fill(lambda log: log.append([broken, entry(1)]))
    ran = program("dlq", "ls", "--json")
    assert [letter["id"] for letter in ran.json["dead_letters"]] == ["dlq_1"]
    assert ran.err == "warning: left out what cannot be read in trigger.dlq: record 1\n"


def test_a_warning_of_many_records_ends(program: Any) -> None:
    broken = Append("trigger.dlq", "dlq_entry", {"id": "dlq_0"})
    program.fill(lambda log: log.append([broken] * 12))
    assert program("dlq", "ls", "--json").err == (
        "warning: left out what cannot be read in trigger.dlq: "
        "record 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more\n"
    )


def test_an_event_with_several_dead_letters_is_refused(program: Any) -> None:
    twice = [entry(1), entry(2, event_id="trigger_evt_1", binding_id="hourly")]
    program.fill(lambda log: log.append(twice))
    ran = program("dlq", "show", "trigger_evt_1")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "error: event trigger_evt_1 has 2 dead letters:\n  dlq_1  nightly\n  dlq_2  hourly\n"
    )


def test_an_unknown_id_is_refused(program: Any, filled: Any) -> None:
    ran = program("dlq", "show", "dlq_nowhere", "--json")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "error: no dead letter dlq_nowhere. `harn-temporal dlq ls --all` shows them\n"


def test_an_age_that_is_none_is_refused(program: Any, filled: Any) -> None:
    ran = program("dlq", "ls", "--older-than", "soon")
    assert (ran.code, ran.out) == (2, "")
    assert "'soon' is not a duration" in ran.err


def test_people_see_a_table(program: Any, filled: Any) -> None:
    heading, _, row = program("dlq", "ls").out.splitlines()
    names = ["id", "state", "binding", "kind", "tenant", "attempts", "class", "age", "error"]
    assert heading.split() == names
    assert re.search(
        r"pending +triage@v2 +github issues.opened +acme +2 +handler_timeout +[0-9]+ d.* +10 m",
        row,
    )


def test_people_see_one_letter(program: Any, filled: Any) -> None:
    shown = program("dlq", "show", filled.dead.id).out
    assert f"event    {filled.dead.id} (github issues.opened)" in shown
    assert "error    10 m over (handler_timeout)" in shown
    assert '"dedupe_key"' in shown


def test_nothing_to_show(program: Any) -> None:
    async def work(log: EventLog) -> None:
        await log.topics()

    program.fill(work)
    assert program("dlq", "ls", "--json").json == {"dead_letters": []}
    ran = program("dlq", "ls")
    assert (ran.code, ran.out, ran.err) == (0, "", "No dead letters.\n")


def test_what_a_payload_holds_does_not_reach_the_terminal(program: Any) -> None:
    program.fill(lambda log: log.append([entry(1, error="\x1b[2J[red]\nnext")]))
    out = program("dlq", "ls").out
    assert "\\x1b[2J[red]\\nnext" in out
    assert "\x1b" not in out
