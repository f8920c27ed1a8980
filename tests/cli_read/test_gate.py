import uuid

import pytest

from harn_temporal.gates.admission import admit
from harn_temporal.gates.circuit import tell_circuit
from harn_temporal.gates.decisions import Asker
from harn_temporal.gates.identity import GateKey
from harn_temporal.gates.models import Concurrency, RateLimit

NAME = "new-issue@v1:acme"
AGENT = "a2a://reviewer.test/triage"


def asker(holder):
    return Asker(
        holder=holder, permit_id=str(uuid.uuid5(uuid.NAMESPACE_URL, holder)), ttl_ms=60_000
    )


@pytest.fixture
def held(program):
    """Two hold a gate of two, two wait; another gate of the same name has let one through."""

    def ask(tx):
        held = GateKey(kind="concurrency", binding_key="new-issue@v1", keyed=True, value="acme")
        for holder in "abcd":
            admit(tx, Concurrency(max=2), held, asker(holder))
        counted = GateKey(kind="rate_limit", binding_key="new-issue@v1", keyed=True, value="acme")
        admit(tx, RateLimit(period_ms=10**12, max=9), counted, asker("a"))
        for attempt in range(1, 6):
            tell_circuit(tx, AGENT, "a", attempt, failed=True)

    program.fill(lambda log: log.transact(ask))


def figures(view):
    return {name: view[name] for name in ("kind", "max", "held", "waiting", "in_window")}


def test_gates_and_circuits_are_listed(program, held):
    found = program("gate", "ls", "--json").json
    assert [each["gate"] for each in found["gates"]] == [NAME, NAME]
    assert [figures(each) for each in found["gates"]] == [
        {"kind": "concurrency", "max": 2, "held": 2, "waiting": 2, "in_window": None},
        {"kind": "rate_limit", "max": 9, "held": 0, "waiting": 0, "in_window": 1},
    ]
    assert found["gates"][1]["period_ms"] == 10**12
    [circuit] = found["circuits"]
    assert (circuit["destination"], circuit["failures"]) == (AGENT, 5)
    assert circuit["state"] == "half-open"
    assert [
        each["kind"]
        for each in program("gate", "ls", "--kind", "rate_limit", "--json").json["gates"]
    ] == ["rate_limit"]
    shown = program("gate", "ls")
    assert NAME in shown.out
    assert AGENT in shown.out


def test_holders_and_waiters_are_shown_in_their_order(program, held):
    [view] = program("gate", "show", NAME, "--kind", "concurrency", "--json").json["gates"]
    assert [each["holder"] for each in view["holders"]] == ["a", "b"]
    assert [each["holder"] for each in view["waiters"]] == ["c", "d"]
    assert view["holders"][0]["acquired_at"] == "2026-01-01T00:00:00.000Z"
    assert view["holders"][0]["expires_at"] == "2026-01-01T00:01:00.000Z"
    people = program("gate", "show", NAME)
    assert people.code == 0
    assert "waiter" in people.out
    missing = program("gate", "show", "nothing")
    assert missing.code == 2
    assert "no gate is called 'nothing'" in missing.err


def test_a_permit_that_is_released_goes_to_who_waits_next(program, held):
    refused = program("gate", "release", NAME)
    assert refused.code == 2
    assert "--holder ID, or --all" in refused.err
    found = program(
        "gate", "release", NAME, "--holder", "a", "--kind", "concurrency", "--reason", "x", "--json"
    ).json
    assert found["released"] == [{"kind": "concurrency", "holder": "a"}]
    assert found["granted"] == ["c"]
    assert found["reason"].endswith(": x")
    taken = program("gate", "release", NAME, "--holder", "d")
    assert taken.out == f"Took its place at the concurrency gate {NAME} from d.\n"
    [view] = program("gate", "show", NAME, "--kind", "concurrency", "--json").json["gates"]
    assert {each["holder"] for each in view["holders"]} == {"b", "c"}
    assert view["waiters"] == []
    again = program("gate", "release", NAME, "--holder", "a")
    assert (again.code, "'a' neither holds nor waits" in again.err) == (2, True)
    found = program("gate", "release", NAME, "--all", "--json").json
    assert {each["holder"] for each in found["released"]} == {"b", "c"}
    assert found["granted"] == []


def test_whoever_is_let_through_by_a_release_of_all_is_named(program, held):
    found = program("gate", "release", NAME, "--kind", "concurrency", "--all", "--json").json
    assert [each["holder"] for each in found["released"]] == ["a", "b"]
    assert found["granted"] == ["c", "d"]
    [view] = program("gate", "show", NAME, "--kind", "concurrency", "--json").json["gates"]
    assert {each["holder"] for each in view["holders"]} == {"c", "d"}


def test_a_circuit_is_shown_by_its_destination(program, held):
    [circuit] = program("gate", "ls", "--json").json["circuits"]
    shown = program("gate", "show", AGENT, "--json").json
    assert shown == {"gates": [], "circuits": [circuit]}
    people = program("gate", "show", AGENT).out
    assert [AGENT in people, "half-open" in people] == [True, True]
    other = program("gate", "show", "a2a://elsewhere.test/x")
    assert (other.code, other.out) == (2, "")
    assert "the circuit of 'a2a://elsewhere.test/x' is closed: nothing failed there" in other.err


def test_a_circuit_is_closed(program, held):
    found = program("gate", "release", AGENT, "--json").json
    assert found == {"destination": AGENT, "was": "half-open"}
    assert program("gate", "ls", "--json").json["circuits"] == []
    assert program("gate", "release", AGENT).code == 2
