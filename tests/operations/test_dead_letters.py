"""Dead letters: replayed until resolved, given up, exported; the same in every process."""

from __future__ import annotations

import asyncio
import json
import time

from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.headers import OUTCOME
from harn_temporal.worker import running_worker


async def letters(package, *arguments):
    return (await package.run("dlq", "ls", "--json", *arguments)).json["dead_letters"]


async def dead(package, client, *payloads, **event):
    """The events of dispatches that have just died."""
    events = [(await package.ingest(payload, **event))[0] for payload in payloads]
    async with running_worker(client, package.log, package.manifest):
        await package.ended(len(events))
    return events


async def audits(log):
    return [record.payload for record in await log.read("trigger.operations.audit")]


async def test_a_replay_that_succeeds_resolves(temporal_client, make_package, triggers):
    package = make_package(triggers.one("fails_until_mended", triggers.FAST))
    [event] = await dead(package, temporal_client, {"n": 1}, tenant_id="acme")
    [letter] = await letters(package)
    assert (letter["event_id"], letter["state"], letter["attempts"]) == (event.id, "pending", 2)

    async with running_worker(temporal_client, package.log, package.manifest):
        replayed = (await package.run("dlq", "replay", letter["id"], "--json")).json
        [item] = replayed["items"]
        assert (item["id"], item["status"], item["latest_status"]) == (
            letter["id"],
            "replayed",
            "dlq",
        )
        again = (await package.ended(2))[item["workflow_id"]]
        assert again.headers[OUTCOME] == "dlq"
        [still] = await letters(package)  # it died again: one dead letter, and its history grows
        assert (still["id"], still["attempts"]) == (letter["id"], 4)
        assert still["moved_at"] == letter["moved_at"]

        (package.folder / "mended").touch()
        replayed = (await package.run("dlq", "replay", event.id, "--json")).json
        assert replayed["items"][0]["workflow_id"].endswith("/replay/2")
        assert replayed["worker_seen"] is True
        end = (await package.ended(3))[replayed["items"][0]["workflow_id"]]
        assert end.headers[OUTCOME] == "succeeded"
    assert await letters(package) == []
    [resolved] = await letters(package, "--all")
    assert (resolved["id"], resolved["state"], resolved["attempts"]) == (
        letter["id"],
        "resolved",
        5,
    )
    shown = (await package.run("dlq", "show", letter["id"], "--json")).json
    assert [each["status"] for each in shown["retry_history"]] == [*["failed"] * 4, "success"]
    assert shown["event"] == event.to_json()
    late = await package.run("dlq", "replay", letter["id"], "--json")
    assert late.code == 1
    assert json.loads(late.out)["items"][0]["reason"] == "it is resolved"
    assert [(each["operation"], each["executed_count"]) for each in await audits(package.log)] == [
        ("dlq_replay", 1),
        ("dlq_replay", 1),
        ("dlq_replay", 0),
    ]


async def test_a_replay_of_the_event_resolves_as_well(temporal_client, make_package, triggers):
    package = make_package(triggers.one("fails_until_mended", triggers.FAST))
    [event] = await dead(package, temporal_client, {})
    (package.folder / "mended").touch()
    async with running_worker(temporal_client, package.log, package.manifest):
        await package.run("trigger", "replay", event.id)
        assert sorted(await package.statuses(2)) == ["dlq", "succeeded"]
    assert [each["state"] for each in await letters(package, "--all")] == ["resolved"]


async def test_replay_by_filters_leaves_alone_what_is_being_replayed(
    temporal_client, make_package, triggers
):
    package = make_package(triggers.one("fails", triggers.FAST))
    await dead(package, temporal_client, {"n": 1}, {"n": 2})
    dry = (await package.run("dlq", "replay", "--trigger", "on-push", "--dry-run", "--json")).json
    assert [item["status"] for item in dry["items"]] == ["dry_run"] * 2
    assert len(await package.log.read("trigger.inbox.envelopes")) == 2
    filters = ("--error-class", "handler_panic", "--newer-than", "1d", "--rate", "50")
    first = (await package.run("dlq", "replay", *filters, "--json")).json
    assert (first["executed_count"], first["worker_seen"]) == (2, True)
    assert first["filter"] == "error_class=handler_panic newer_than_ms=86400000"
    second = (await package.run("dlq", "replay", *filters, "--json")).json
    assert (second["executed_count"], second["skipped_count"]) == (0, 2)
    assert "/replay/1 is under way" in second["items"][0]["reason"]
    assert (await audits(package.log))[-1]["rate_limit_per_second"] == 50
    none = (await package.run("dlq", "replay", "--older-than", "1d", "--json")).json
    assert none["items"] == []


async def test_purge_discards_for_good(temporal_client, make_package, triggers):
    package = make_package(triggers.one("fails", triggers.FAST))
    await dead(package, temporal_client, {"n": 1}, {"n": 2})
    one, other = await letters(package)
    refused = await package.run("dlq", "purge", "--older-than", "0s")
    assert (refused.code, refused.out) == (2, "")
    assert "this discards 2 dead letters; add --confirm" in refused.err
    dry = (await package.run("dlq", "purge", one["id"], "--dry-run", "--json")).json
    assert dry["items"][0]["status"] == "dry_run"
    assert len(await letters(package)) == 2

    done = (await package.run("dlq", "purge", one["id"], "--confirm", "--json")).json
    assert (done["operation"], done["executed_count"]) == ("dlq_purge", 1)
    assert done["items"][0]["status"] == "discarded"
    assert [letter["id"] for letter in await letters(package)] == [other["id"]]
    shown = (await package.run("dlq", "show", one["id"], "--json")).json
    assert shown["state"] == "discarded"
    last = shown["retry_history"][-1]
    assert (last["attempt"], last["status"], last["error"]) == (3, "discarded", None)
    entries = [
        record
        for record in await package.log.read("trigger.dlq")
        if record.kind == "dlq_entry" and record.payload["id"] == one["id"]
    ]
    assert [entry.payload["state"] for entry in entries] == ["pending", "discarded"]
    assert not {"event_id", "trigger_id"} & set(entries[-1].headers)
    late = (await package.run("dlq", "purge", one["id"], "--confirm", "--json")).json
    assert late["items"][0]["reason"] == "it is discarded"
    assert (await package.run("dlq", "purge", "--older-than", "1d", "--confirm")).code == 0
    assert len(await letters(package)) == 1


async def test_depth_is_the_same_in_every_process(temporal_client, make_package, triggers):
    package = make_package(triggers.one("fails", triggers.FAST))
    await dead(package, temporal_client, {"n": 1}, {"n": 2})
    [one, _] = await letters(package)
    await package.run("dlq", "purge", one["id"], "--confirm")
    other = await open_event_log(StoreSettings.from_environment(package.state_dir, {}))
    try:
        for log in (package.log, other):
            assert await log.query(lambda reader: reader.dead_letters.depth()) == 1
        await other.rebuild()
        assert await other.query(lambda reader: reader.dead_letters.depth()) == 1
    finally:
        await other.close()


async def test_a_letter_that_harn_discards_is_discarded_here(
    temporal_client, make_package, triggers
):
    package = make_package(triggers.one("fails", triggers.FAST))
    await dead(package, temporal_client, {})
    entry = (await package.log.read("trigger.dlq"))[-1].payload
    await package.append_by_sql("trigger.dlq", "dlq_entry", entry | {"state": "discarded"})
    assert await letters(package) == []


async def test_export_is_harn_s_fixture(temporal_client, make_package, triggers):
    package = make_package(triggers.one("fails", triggers.FAST))
    events = await dead(package, temporal_client, {"n": 1}, {"n": 2})
    one, other = await letters(package)
    [event] = [each for each in events if each.id == one["event_id"]]
    document = (await package.run("dlq", "export", one["id"])).json
    history = document["entry"]["attempt_history"]
    assert [(each["attempt"], each["status"]) for each in history] == [(1, "failed"), (2, "failed")]
    assert document == {
        "fixture_schema": "harn.dlq.fixture.v1",
        "entry": {
            "id": one["id"],
            "event_id": event.id,
            "trigger_id": "on-push",
            "binding_id": "on-push",
            "binding_key": "on-push@v1",
            "binding_version": 1,
            "provider": "github",
            "event_kind": "push",
            "failed_at": history[-1]["at"],
            "failed_at_ms": document["entry"]["failed_at_ms"],
            "last_error": "ValueError: broken",
            "error_class": "handler_panic",
            "retry_count": 2,
            "state": "pending",
            "headers": event.headers,
            "payload": event.provider_payload,
            "event": event.to_json(),
            "attempt_history": history,
            "predicate_trace": [],
        },
    }
    assert abs(document["entry"]["failed_at_ms"] - time.time() * 1000) < 120_000
    lines = (await package.run("dlq", "export", "--trigger", "on-push")).out.splitlines()
    assert [json.loads(line)["entry"]["id"] for line in lines] == [one["id"], other["id"]]
    wrote = await package.run("dlq", "export", "--out", "fixtures")
    assert wrote.err == "Wrote 2 fixtures to fixtures.\n"
    written = await asyncio.to_thread((package.folder / "fixtures" / f"{one['id']}.json").read_text)
    assert json.loads(written) == document


async def test_bad_input(temporal_client, make_package, triggers):
    package = make_package(triggers.one("fails", triggers.FAST))
    await dead(package, temporal_client, {})
    [letter] = await letters(package)
    wrong = letter["id"][:-1] + ("0" if letter["id"][-1] != "0" else "1")

    async def refused(*arguments):
        ran = await package.run("dlq", *arguments)
        assert (ran.code, ran.out) == (2, "")
        return ran.err

    for command in ("replay", "export", "purge"):
        assert f"Did you mean {letter['id']}?" in await refused(command, wrong)
        assert "not both" in await refused(command, letter["id"], "--trigger", "on-push")
        assert "'soon' is not a duration" in await refused(command, "--older-than", "soon")
    assert "name dead letters, or choose them by filters" in await refused("replay")
    assert "neither recorded nor current" in await refused("replay", letter["id"], "--version", "x")
    assert "--rate -1 is no number" in await refused("replay", letter["id"], "--rate", "-1")
    assert await package.log.read("trigger.operations.audit") == []
