from dataclasses import replace
from typing import Any

from harn_temporal.eventlog.log import Append
from harn_temporal.headers import OUTCOME

NOW_MS = 1_767_225_600_000

NO_FIGURES = {
    "dispatches": 0,
    "attempts": 0,
    "running": 0,
    "retrying": 0,
    "failing": 0,
    "succeeded": 0,
    "failed": 0,
    "dlq": 0,
    "skipped": 0,
    "waiting": 0,
    "cancelled": 0,
    "last_at": None,
}


def view(trigger_id: str, version: int, fingerprint: str, state: str, **figures: Any) -> Any:
    return {
        "trigger_id": trigger_id,
        "binding_key": f"{trigger_id}@v{version}",
        "version": version,
        "package": "triage",
        "state": state,
        "provider": "github",
        "kind": "webhook",
        "handler_kind": "local",
        "fingerprint": fingerprint,
        "changed_at": "2026-01-01T00:00:00.000Z",
        "figures": NO_FIGURES | figures,
    }


IDLE = view("idle", 1, "first", "active")
OLDER = view("triage", 1, "older", "terminated")
NEWER = view(
    "triage",
    2,
    "newer",
    "active",
    dispatches=4,
    attempts=4,
    retrying=1,
    succeeded=1,
    dlq=1,
    skipped=1,
    last_at="2026-01-01T00:00:04.000Z",
)


def test_lists_what_is_in_use(program: Any, filled: Any) -> None:
    assert program("trigger", "ls", "--json").json == {"triggers": [IDLE, NEWER]}


def test_lists_every_version(program: Any, filled: Any) -> None:
    assert program("trigger", "ls", "--all", "--json").json == {"triggers": [IDLE, OLDER, NEWER]}


def latest(event: Any, status: str, attempts: int, second: int) -> Any:
    return {
        "event_id": event.id,
        "binding_key": "triage@v2",
        "tenant_id": event.tenant_id,
        "status": status,
        "attempts": attempts,
        "at": f"2026-01-01T00:00:0{second}.000Z",
    }


def test_shows_a_trigger(program: Any, filled: Any) -> None:
    shown = program("trigger", "show", "triage", "--json").json
    definition = shown.pop("definition")
    assert shown == {
        "trigger_id": "triage",
        "versions": [OLDER, NEWER],
        "latest": [
            latest(filled.succeeded, "succeeded", 1, 1),
            latest(filled.dead, "dlq", 2, 2),
            latest(filled.skipped, "skipped", 0, 3),
            latest(filled.retrying, "retrying", 1, 4),
        ],
    }
    assert definition["handler"] == {"kind": "local", "uri": "handlers::on_new_issue"}
    assert definition["fingerprint"] == "newer"


def outbox(number: int) -> Append:
    headers = {
        "event_id": f"event-{number}",
        "binding_key": "triage@v2",
        "attempt": "1",
        OUTCOME: "succeeded",
    }
    return Append("trigger.outbox", "dispatch_succeeded", {}, headers, NOW_MS + number)


def test_shows_the_latest_ten_of_all_tenants(program: Any, filled: Any) -> None:
    plain = [outbox(number) for number in range(10_000, 10_008)]
    tenant = [
        replace(outbox(number), topic="tenant.acme.trigger.outbox")
        for number in range(10_008, 10_016)
    ]
    program.fill(lambda log: log.append([*tenant, *plain]))
    shown = program("trigger", "show", "triage", "--json").json["latest"]
    assert [each["event_id"] for each in shown] == [f"event-{n}" for n in range(10_006, 10_016)]


def test_shows_one_version(program: Any, filled: Any) -> None:
    shown = program("trigger", "show", "triage@v1", "--json").json
    assert shown["versions"] == [OLDER]
    assert shown["definition"]["fingerprint"] == "older"
    assert shown["latest"] == []


def test_an_unknown_trigger_names_the_nearest(program: Any, filled: Any) -> None:
    ran = program("trigger", "show", "triag", "--json")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "error: no trigger 'triag' in this store. Did you mean triage?\n"


def test_an_unknown_trigger_without_a_near_one_lists_all(program: Any, filled: Any) -> None:
    ran = program("trigger", "show", "zzz")
    assert ran.err == "error: no trigger 'zzz' in this store. It knows: idle, triage\n"


def test_people_see_tables(program: Any, filled: Any) -> None:
    listed = program("trigger", "ls").out.splitlines()
    assert listed[0].split() == [
        "binding", "state", "package", "source", "handler",
        "dispatches", "under", "way", "dead", "last",
    ]  # fmt: skip
    assert listed[3].split() == [
        "triage@v2", "active", "triage", "github", "webhook", "local",
        "4", "1", "1", "2026-01-01T00:00:04.000Z",
    ]  # fmt: skip
    shown = program("trigger", "show", "triage").out
    assert '"uri": "handlers::on_new_issue"' in shown
    assert filled.retrying.id in shown


def test_nothing_is_registered(program: Any) -> None:
    program.fill(lambda log: log.topics())
    assert program("trigger", "ls", "--json").json == {"triggers": []}
    ran = program("trigger", "ls")
    assert (ran.code, ran.out) == (0, "")
    assert "`harn-temporal up` registers those of the manifest" in ran.err
