"""`trigger cancel` and `trigger replay`: what they choose, print, append and refuse."""

from __future__ import annotations

import json
import re

import pytest

from harn_temporal.headers import OUTCOME, REPLAY, REPLAY_OF
from harn_temporal.worker import running_worker

LONG = 'retry = { max = 3, backoff = "linear", delay_ms = 3600000 }'


async def audits(log):
    return [record.payload for record in await log.read("trigger.operations.audit")]


async def test_cancel_appends_a_request_and_an_audit_record(make_package, triggers, monkeypatch):
    monkeypatch.setenv("USER", "ada")
    package = make_package(triggers.one("fails", LONG))
    event, _ = await package.ingest()
    ran = await package.run("trigger", "cancel", event.id, "--json")
    report = ran.json
    assert report == {
        "operation": "cancel",
        "dry_run": False,
        "filter": None,
        "audit_id": report["audit_id"],
        "matched_count": 1,
        "executed_count": 1,
        "skipped_count": 0,
        "items": [
            {
                "event_id": event.id,
                "binding_key": "on-push@v1",
                "latest_status": "pending",
                "status": "requested",
                "reason": None,
            }
        ],
        "worker_seen": False,
    }
    assert "no worker of package demo was seen in the last minute" in ran.err
    [request] = await package.log.read("trigger.cancel.requests")
    assert request.kind == "dispatch_cancel_requested"
    assert set(request.headers) <= {name for name in request.headers if name.startswith("harn.p")}
    asked_at = request.payload["requested_at"]
    assert request.payload == {
        "binding_key": "on-push@v1",
        "event_id": event.id,
        "requested_at": asked_at,
        "requested_by": "ada",
        "audit_id": report["audit_id"],
    }
    [audit] = await package.log.read("trigger.operations.audit")
    assert audit.kind == "trigger_operation_audit"
    assert re.fullmatch(r"trigger_audit_[0-9a-f-]{36}", report["audit_id"])
    assert audit.payload == {
        "id": report["audit_id"],
        "operation": "cancel",
        "dry_run": False,
        "filter": None,
        "requested_at": audit.payload["requested_at"],
        "requested_by": "ada",
        "matched_count": 1,
        "executed_count": 1,
        "skipped_count": 0,
        "rate_limit_per_second": None,
        "targets": [
            {"event_id": event.id, "binding_key": "on-push@v1", "latest_status": "pending"}
        ],
    }
    again = (await package.run("trigger", "cancel", event.id, "--json")).json
    assert (again["executed_count"], again["skipped_count"]) == (0, 1)
    assert again["items"][0]["reason"] == "its cancellation was requested before"
    assert len(await package.log.read("trigger.cancel.requests")) == 1


async def test_cancel_by_the_command_reaches_a_running_dispatch(
    temporal_client, make_package, triggers
):
    package = make_package(triggers.one("fails", LONG))
    event, _ = await package.ingest()
    async with running_worker(temporal_client, package.log, package.manifest):
        await package.waits_for_retry()
        ran = await package.run("trigger", "cancel", event.id, "--json")
        assert ran.json["items"][0]["latest_status"] == "retry_scheduled"
        assert ran.json["worker_seen"] is True
        assert ran.err == ""
        assert await package.statuses() == ["cancelled"]
    late = (await package.run("trigger", "cancel", event.id, "--json")).json
    assert late["items"][0]["status"] == "skipped"
    assert late["items"][0]["reason"] == "it has ended as cancelled"


async def test_where_selects_by_event_and_progress(temporal_client, make_package, triggers):
    package = make_package(triggers.one("fails", LONG))
    async with running_worker(temporal_client, package.log, package.manifest):
        waiting, _ = await package.ingest({"n": 1})
        await package.waits_for_retry()
    chosen, _ = await package.ingest({"n": 2}, tenant_id="acme", headers={"x-team": "blue"})
    await package.ingest({"n": 3}, tenant_id="acme", headers={"x-team": "red"})

    async def matched(where, *more):
        ran = await package.run("trigger", "cancel", "--where", where, "--dry-run", "--json", *more)
        return [item["event_id"] for item in ran.json["items"]]

    assert await matched('attempt.status == "retry_scheduled"') == [waiting.id]
    assert await matched('event.headers["x-team"] == "blue"') == [chosen.id]
    assert await matched(
        'event.tenant == "acme" && event.payload.n > 1 && event.payload.n < 3'
    ) == [chosen.id]
    assert await matched('binding.key == "on-push@v1" && attempt.count > 0') == [waiting.id]
    assert await matched("event.payload.absent == 1") == []
    assert len(await matched("true")) == 3
    assert len(await matched("true", "--trigger", "on-push@v1")) == 3
    assert await package.log.read("trigger.cancel.requests") == []
    assert {audit["dry_run"] for audit in await audits(package.log)} == {True}
    assert {audit["executed_count"] for audit in await audits(package.log)} == {0}

    where = 'event.tenant == "acme"'
    done = (await package.run("trigger", "cancel", "--where", where, "--rate", "50", "--json")).json
    assert (done["matched_count"], done["executed_count"]) == (2, 2)
    last = (await audits(package.log))[-1]
    assert (last["filter"], last["rate_limit_per_second"]) == (where, 50)
    requests = await package.log.read("trigger.cancel.requests")
    assert {request.payload["audit_id"] for request in requests} == {done["audit_id"]}


async def test_replay_dispatches_the_event_again_past_its_dedupe_claim(
    temporal_client, make_package, triggers
):
    package = make_package(triggers.one("succeeds"))
    traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    event, first = await package.ingest(
        {"n": 1}, dedupe_key="once", headers={"traceparent": traceparent}, tenant_id="acme"
    )
    _, duplicate = await package.ingest({"n": 1}, dedupe_key="once", tenant_id="acme")
    assert duplicate.status == "duplicate"
    async with running_worker(temporal_client, package.log, package.manifest):
        await package.ended(1)
        ran = await package.run("trigger", "replay", event.id, "--json")
        [item] = ran.json["items"]
        assert (item["status"], item["latest_status"]) == ("replayed", "succeeded")
        assert item["workflow_id"] == f"{first.workflow_id}/replay/1"
        ends = await package.ended(2)
        again = (await package.run("trigger", "replay", event.id, "--json")).json
        assert again["items"][0]["workflow_id"] == f"{first.workflow_id}/replay/2"
        ends = await package.ended(3)
    original, replayed = ends[first.workflow_id], ends[f"{first.workflow_id}/replay/1"]
    assert REPLAY_OF not in original.headers
    assert replayed.headers[REPLAY_OF] == replayed.payload["replay_of_event_id"] == event.id
    assert replayed.headers["event_id"] == event.id
    assert replayed.payload["result"] == original.payload["result"]
    assert replayed.payload["result"]["trace"] == event.trace_id
    assert len(list(package.folder.glob("ran-*"))) == 3
    assert len(await package.log.read("trigger.inbox.claims")) == 1
    envelopes = await package.log.read("tenant.acme.trigger.inbox.envelopes")
    assert [record.headers.get(REPLAY) for record in envelopes] == [None, "1", "2"]
    assert {record.headers["traceparent"] for record in envelopes} == {traceparent}
    assert all(record.payload["event"] == event.to_json() for record in envelopes)
    recorded = await package.log.read("triggers.events")
    assert [record.payload["replay_of_event_id"] for record in recorded] == [
        None,
        event.id,
        event.id,
    ]
    edges = [
        edge["kind"]
        for record in await package.log.read("observability.action_graph")
        for edge in record.payload["observability"]["action_graph_edges"]
    ]
    assert edges.count("replay_chain") == 2


@pytest.mark.parametrize(
    ("version", "key"), [("recorded", "on-push@v1"), ("current", "on-push@v2")]
)
async def test_replay_under_a_version(temporal_client, make_package, triggers, version, key):
    package = make_package(triggers.one("fails", triggers.FAST))
    event, first = await package.ingest()
    async with running_worker(temporal_client, package.log, package.manifest):
        assert await package.statuses() == ["dlq"]
    package.change(triggers.one("succeeds"))
    async with running_worker(temporal_client, package.log, package.manifest):
        ran = await package.run("trigger", "replay", event.id, "--version", version, "--json")
        assert ran.code == 0, ran.err
        end = (await package.ended(2))[f"{first.workflow_id}/replay/1"]
    assert end.headers["binding_key"] == key
    assert end.headers[OUTCOME] == ("dlq" if version == "recorded" else "succeeded")


@pytest.mark.parametrize(("handler", "outcome"), [("succeeds", "succeeded"), ("fails", "dlq")])
async def test_replay_and_wait(temporal_client, make_package, triggers, handler, outcome):
    package = make_package(triggers.one(handler, triggers.FAST))
    event, _ = await package.ingest()
    async with running_worker(temporal_client, package.log, package.manifest):
        await package.ended()
        ran = await package.run("trigger", "replay", event.id, "--wait", "--json")
    assert ran.code == (0 if outcome == "succeeded" else 1)
    [item] = json.loads(ran.out)["items"]
    assert (item["status"], item["outcome"]) == ("replayed", outcome)
    assert ran.err == "1 replayed, waiting for their ends. Ctrl-C leaves them to workers.\n"


async def test_replay_of_what_no_binding_can_take_is_skipped(make_package, triggers):
    package = make_package(triggers.one("succeeds"))
    event, _ = await package.ingest()
    harn = event.model_copy(update={"id": "trigger_evt_of_harn"})
    written = {"binding_id": "nightly", "binding_version": 3, "replay_of_event_id": None}
    await package.append_by_sql(
        "triggers.events", "trigger_event", written | {"event": harn.to_json()}
    )
    ran = await package.run("trigger", "replay", harn.id, "--json")
    assert ran.code == 1
    assert "the store has no definition of nightly@v3, which Harn registered" in ran.out
    current = await package.run("trigger", "replay", harn.id, "--version", "current", "--json")
    assert current.code == 1
    assert "trigger nightly is not in use now" in current.out
    [audit, _] = await audits(package.log)
    assert (audit["operation"], audit["skipped_count"], audit["executed_count"]) == ("replay", 1, 0)
    assert audit["targets"] == [
        {"event_id": harn.id, "binding_key": "nightly@v3", "latest_status": "pending"}
    ]


async def test_replay_in_bulk_first_dry(make_package, triggers):
    package = make_package(triggers.one("succeeds"))
    for number in range(3):
        await package.ingest({"n": number})
    where = "event.payload.n < 2"
    dry = (await package.run("trigger", "replay", "--where", where, "--dry-run", "--json")).json
    assert [item["status"] for item in dry["items"]] == ["dry_run"] * 2
    assert len(await package.log.read("trigger.inbox.envelopes")) == 3
    done = await package.run("trigger", "replay", "--where", where)
    assert done.code == 0
    assert done.out.count("replayed") == 2
    assert "2 replayed, 0 left alone. Audit: trigger_audit_" in done.err
    assert len(await package.log.read("trigger.inbox.envelopes")) == 5


@pytest.mark.parametrize("command", ["cancel", "replay"])
async def test_bad_input(make_package, triggers, command):
    package = make_package(triggers.one("succeeds"))
    event, _ = await package.ingest({"n": "text"})

    async def refused(*arguments):
        ran = await package.run("trigger", command, *arguments)
        assert (ran.code, ran.out) == (2, "")
        return ran.err

    wrong = event.id[:-1] + ("0" if event.id[-1] != "0" else "1")
    assert f"no event '{wrong}' in this store. Did you mean {event.id}?" in await refused(wrong)
    assert "no event 'x' in this store" in await refused("x")
    assert "Did you mean on-push?" in await refused(event.id, "--trigger", "on-psh")
    assert "name either an event or, with --where" in await refused()
    assert "name either an event or" in await refused(event.id, "--where", "true")
    assert "is not valid CEL" in await refused("--where", "event.id ==")
    unknown = await refused("--where", "dispatch.status == 1")
    assert "reads `dispatch`, which does not exist" in unknown
    assert "`event`, `binding`, `attempt`, `outcome`, `audit`" in unknown
    assert f"event {event.id}: " in await refused("--where", "event.payload.n > 2")
    assert "gives true or false" in await refused("--where", "event.id")
    assert "--rate 0 is no number" in await refused(event.id, "--rate", "0")
    if command == "replay":
        assert "neither recorded nor current" in await refused(event.id, "--version", "newest")
    assert await package.log.read("trigger.operations.audit") == []
    assert await package.log.read("trigger.cancel.requests") == []


async def test_without_a_store_nothing_is_made(make_package, triggers, tmp_path):
    package = make_package(triggers.one("succeeds"))
    package.state_dir = tmp_path / "elsewhere"
    ran = await package.run("trigger", "cancel", "trigger_evt_1")
    assert (ran.code, ran.out) == (3, "")
    assert "there is no EventLog at" in ran.err
    assert not package.state_dir.exists()
