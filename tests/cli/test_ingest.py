"""`ingest`: every binding that matches gets the event."""

from __future__ import annotations


def test_every_match_is_accepted(program):
    ran = program(
        *("ingest", "--provider", "github", "--kind", "issues.opened", "--payload", "-", "--json"),
        *("--header", "x-github-delivery=d1"),
        stdin='{"action": "opened"}',
    )

    assert ran.code == 0, ran.err
    assert set(ran.json) == {"event_id", "ingested"}
    assert [(each["trigger_id"], each["status"]) for each in ran.json["ingested"]] == [
        ("new-issue", "accepted"),
        ("broken", "accepted"),
    ]
    assert {each["event_id"] for each in ran.json["ingested"]} == {ran.json["event_id"]}
    assert "no worker of package shop" in ran.err


def test_a_delivery_that_comes_twice_is_a_duplicate(program):
    arguments = ("ingest", "--provider", "github", "--kind", "issues.opened", "--json")
    delivery = ("--header", "x-github-delivery=d1")
    program(*arguments, *delivery)

    again = program(*arguments, *delivery)

    assert again.code == 0
    assert [each["status"] for each in again.json["ingested"]] == ["duplicate", "duplicate"]
    assert "no worker" not in again.err


def test_a_filter_holds(program):
    ran = program("ingest", "--provider", "github", "--kind", "ping")

    assert ran.code == 0
    assert ran.out.splitlines() == [
        "broken@v1 filtered: the trigger's filter says no, so nothing was appended"
    ]


def test_without_match_nothing_is_appended_and_it_says_so(program):
    ran = program("ingest", "--provider", "gitlab", "--kind", "push", "--json")

    assert ran.code == 0
    assert ran.json["ingested"] == []
    assert "no trigger of harn.toml matches gitlab push" in ran.err
