"""What finding the dispatches of an operation reads: what it has to, however much there is."""

from __future__ import annotations

from collections import Counter

import pytest

from harn_temporal.errors import NotFoundError
from harn_temporal.eventlog.log import Append
from harn_temporal.eventlog.transaction import StoreReader
from harn_temporal.headers import OUTCOME, WORKFLOW_ID
from harn_temporal.inspection.dead_letters import dead_letters, find
from harn_temporal.operations import targets
from harn_temporal.operations.audit import Intent
from harn_temporal.operations.dead_letters import replay_letters
from harn_temporal.operations.targets import Selection, select
from harn_temporal.operations.where import Where

ENVELOPES = "trigger.inbox.envelopes"


@pytest.fixture
def reads(monkeypatch):
    """How many records were read of each topic."""
    counted = Counter()
    read = StoreReader.read

    def counting(reader, topic, after=0, limit=1000):
        found = read(reader, topic, after, limit)
        counted[topic] += len(found)
        return found

    monkeypatch.setattr(StoreReader, "read", counting)
    return counted


@pytest.fixture
async def filled(make_package, triggers, monkeypatch):
    """Seven events; the third has succeeded, the fourth is dead, the fifth waits for a retry."""
    monkeypatch.setattr(targets, "PAGE", 3)
    package = make_package(triggers.one("succeeds"))
    events = [(await package.ingest({"n": n}))[0] for n in range(7)]
    for event, kind, outcome in (
        (events[2], "dispatch_succeeded", "succeeded"),
        (events[3], "dispatch_failed", "dlq"),
        (events[4], "dispatch_failed", None),
    ):
        headers = {"event_id": event.id, "binding_key": "on-push@v1", WORKFLOW_ID: event.id}
        end = {} if outcome is None else {OUTCOME: outcome}
        await package.log.append(
            [
                Append("trigger.outbox", "dispatch_started", {}, {**headers, "attempt": "1"}),
                Append("trigger.outbox", kind, {"error": "boom"}, {**headers, **end}),
            ]
        )
    return package, events


async def selected(package, **wanted):
    found = await select(package.log, Selection(**wanted))
    return {target.event_id: target.progress for target in found}


async def test_an_event_is_looked_up(filled, reads):
    package, events = filled
    [(event_id, progress)] = (await selected(package, event_id=events[3].id)).items()
    assert (event_id, progress.status, progress.error) == (events[3].id, "dlq", "boom")
    assert (progress.attempts, progress.terminal) == (1, True)
    assert reads == {}


async def test_an_expression_over_progress_reads_no_event(filled, reads):
    package, events = filled
    found = await selected(package, where=Where('attempt.status == "retry_scheduled"'))
    assert list(found) == [events[4].id]
    assert (found[events[4].id].error, found[events[4].id].terminal) == ("boom", False)
    assert len(await selected(package, where=Where("binding.id == 'on-push'"))) == 7
    assert len(await selected(package, where=Where('attempt.status == "pending"'))) == 4
    assert reads == {}


async def test_an_expression_over_the_event_reads_each_once(filled, reads):
    package, events = filled
    found = await selected(package, where=Where("event.payload.n > 4"))
    assert sorted(found) == sorted(event.id for event in events[5:])
    assert reads == {ENVELOPES: 7}


async def test_an_expression_costs_a_query_for_so_many_events(filled, monkeypatch):
    package, _ = filled
    queries = []
    query = package.log.query

    async def counting(work):
        queries.append(work)
        return await query(work)

    monkeypatch.setattr(package.log, "query", counting)
    assert len(await selected(package, where=Where("event.payload.n >= 0"))) == 7
    assert len(queries) == 4  # the bindings, and three pages


async def test_an_unknown_event_names_the_nearest_and_reads_nothing(filled, reads):
    package, events = filled
    wrong = events[0].id[:-1] + ("0" if events[0].id[-1] != "0" else "1")
    with pytest.raises(NotFoundError, match=f"Did you mean {events[0].id}"):
        await selected(package, event_id=wrong)
    with pytest.raises(NotFoundError, match="no event 'nothing' in this store"):
        await selected(package, event_id="nothing")
    assert reads == {}


async def test_dead_letters_are_looked_at_together_and_replayed_once(
    make_package, triggers, monkeypatch
):
    package = make_package(triggers.one("succeeds"))
    event, _ = await package.ingest()
    other, _ = await package.ingest()
    letter = {
        "binding_id": "on-push",
        "binding_version": 1,
        "provider": "github",
        "kind": "push",
        "state": "pending",
        "error": "boom",
    }
    await package.log.append(
        [
            Append("trigger.dlq", "dlq_entry", {**letter, "id": id_, "event_id": e.id, "event": j})
            for id_, e, j in (
                ("dlq_1", event, event.to_json()),
                ("dlq_2", event, event.to_json()),
                ("dlq_3", other, other.to_json()),
            )
        ]
    )
    letters = (await dead_letters(package.log)).letters
    queries = []
    query = package.log.query

    async def counting(work):
        queries.append(work)
        return await query(work)

    monkeypatch.setattr(package.log, "query", counting)
    dry = await replay_letters(package.log, letters, Intent("dlq_replay", dry_run=True), "recorded")
    assert [item.done for item in dry.items] == ["dry_run"] * 3
    assert len(queries) == 2  # the one binding, and all letters

    report = await replay_letters(package.log, letters, Intent("dlq_replay"), "recorded")
    assert [item.done for item in report.items] == ["replayed", "skipped", "replayed"]
    assert report.items[1].reason == f"{report.items[0].workflow_id} is under way"
    again = await replay_letters(package.log, letters, Intent("dlq_replay"), "recorded")
    assert [item.done for item in again.items] == ["skipped"] * 3


async def test_an_unknown_dead_letter_is_compared_with_a_few(make_package, triggers, monkeypatch):
    package = make_package(triggers.one("succeeds"))
    letters = [
        {
            "id": f"dlq_0199{n:04x}-7f6e-7c3a-9d51-0a4b{n * 7919:08x}",
            "event_id": f"e{n}",
            "binding_id": "on-push",
            "provider": "github",
            "kind": "push",
            "state": "pending",
            "error": "boom",
        }
        for n in range(400)
    ]
    await package.log.append([Append("trigger.dlq", "dlq_entry", letter) for letter in letters])
    monkeypatch.delattr("harn_temporal.eventlog.dead_letters.DeadLetterTables.all")
    meant = letters[300]["id"]
    for wrong in (meant[:-1] + "z", "dlq_0z99" + meant[8:], meant[-8:]):
        with pytest.raises(NotFoundError, match=f"no dead letter {wrong}. Did you mean {meant}"):
            await find(package.log, wrong)
    with pytest.raises(NotFoundError, match="`harn-temporal dlq ls --all` shows them"):
        await find(package.log, "nothing")
