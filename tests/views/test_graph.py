import re
from typing import Any

import pytest

from harn_temporal.dispatch_records import end_key, pending_key, start_key, trigger_key
from harn_temporal.dispatch_records.keys import workflow_of
from harn_temporal.eventlog.log import Append
from harn_temporal.eventlog.topics import ACTION_GRAPH
from harn_temporal.eventlog.transaction import StoreReader
from harn_temporal.inspection.graph import event_graph


def nodes(graph: Any) -> dict[str, tuple[str, str]]:
    return {node["id"]: (node["status"], node["outcome"]) for node in graph["nodes"]}


def edges(graph: Any) -> list[tuple[str, str, str]]:
    return [(edge["from_id"], edge["to_id"], edge["kind"]) for edge in graph["edges"]]


def test_nodes_are_merged_and_the_latest_counts(world: Any) -> None:
    event, other = world.event(), world.event()

    async def work(log: Any) -> None:
        await world.dispatch(log, other, "fine")
        await world.dispatch(log, event, "failed", "dead", passed=True)

    world.fill(work)
    graph = world.json("graph", event.id)
    e = event.id
    assert (graph["event_id"], graph["trace_id"]) == (e, event.trace_id)
    assert list(graph["nodes"][0])[:5] == ["id", "label", "kind", "status", "outcome"]
    assert list(graph["edges"][0]) == ["from_id", "to_id", "kind", "label"]
    assert nodes(graph) == {
        f"trigger:{e}": ("received", "received"),
        f"predicate:triage@v1:{e}": ("completed", "true"),
        f"dispatch:triage@v1:{e}:1": ("failed", "failed"),
        f"retry:triage@v1:{e}:1": ("scheduled", "attempt_2"),
        f"dispatch:triage@v1:{e}:2": ("failed", "failed"),
        f"dlq:triage@v1:{e}": ("queued", "retry_exhausted"),
    }
    assert edges(graph) == [
        (f"trigger:{e}", f"predicate:triage@v1:{e}", "trigger_dispatch"),
        (f"predicate:triage@v1:{e}", f"dispatch:triage@v1:{e}:1", "predicate_gate"),
        (f"dispatch:triage@v1:{e}:1", f"retry:triage@v1:{e}:1", "retry"),
        (f"retry:triage@v1:{e}:1", f"dispatch:triage@v1:{e}:2", "retry"),
        (f"dispatch:triage@v1:{e}:2", f"dlq:triage@v1:{e}", "dlq_move"),
    ]


def test_a_replay_shows_beside_what_it_replays(world: Any) -> None:
    event = world.event()

    async def work(log: Any) -> None:
        await world.dispatch(log, event, "failed", "dead")
        await world.dispatch(log, event, "fine", replay=1)

    world.fill(work)
    graph = world.json("graph", event.id)
    first, replay = graph["dispatches"]
    attempt = f"dispatch:triage@v1:{event.id}:1"
    assert (first["workflow_id"], first["replay"]) == (f"dispatch/demo/triage/{event.id}", None)
    assert (replay["workflow_id"], replay["replay"]) == (
        f"dispatch/demo/triage/{event.id}/replay/1",
        1,
    )
    assert nodes(first)[attempt] == ("failed", "failed")
    assert nodes(replay)[attempt] == ("completed", "success")
    assert nodes(graph)[attempt] == ("completed", "success")
    chain = (f"trigger:{event.id}", f"trigger:{event.id}", "replay_chain")
    assert chain in edges(replay)
    assert chain not in edges(first)


def test_the_tree(world: Any) -> None:
    event = world.event()

    async def work(log: Any) -> None:
        await world.dispatch(log, event, "failed", "dead")
        await world.dispatch(log, event, "fine", replay=1)

    world.fill(work)
    code, out, _ = world.run("graph", event.id)
    assert code == 0
    assert [line.rstrip() for line in out.splitlines()] == [
        f"event {event.id}",
        f"├── dispatch/demo/triage/{event.id}",
        "│   └── trigger github:issues.opened [received]",
        "│       └── dispatch 1 handlers::on_issue [failed]",
        "│           boom",
        "│           └── attempt 2: retry in 500ms [scheduled, attempt_2]",
        "│               └── attempt 2: dispatch 2 handlers::on_issue [failed]",
        "│                   boom",
        "│                   └── 2 attempts: dlq triage [queued, retry_exhausted]",
        "│                       boom",
        f"└── dispatch/demo/triage/{event.id}/replay/1 (replay 1)",
        "    └── trigger github:issues.opened [received]",
        "        └── dispatch 1 handlers::on_issue [completed, success]",
    ]


def test_mermaid_draws_replays_and_escapes_what_came_from_outside(world: Any) -> None:
    event = world.event(kind='x"] --> <b>`#evil|*_\n%%{init}%%')

    async def work(log: Any) -> None:
        await world.dispatch(log, event, "fine")
        await world.dispatch(log, event, "fine", replay=1)

    world.fill(work)
    code, out, _ = world.run("graph", event.id, "--format", "mermaid")
    assert code == 0
    escaped = (
        "trigger github:x#quot;] --#gt; #lt;b#gt;#96;#35;evil#124;#42;#95; %%{init}%% [received]"
    )
    assert out.splitlines() == [
        "flowchart TD",
        f'  n0["{escaped}"]',
        '  n1["dispatch 1 handlers::on#95;issue [completed, success]"]',
        "  n0 --> n1",
        f'  n2["{escaped}"]',
        '  n3["dispatch 1 handlers::on#95;issue [completed, success]"]',
        '  n0 -->|"replay chain"| n2',
        "  n2 --> n3",
    ]


def test_a_terminal_obeys_nothing_in_an_error(world: Any) -> None:
    event = world.event()
    bad = world.outcomes["failed"].model_copy(update={"error": "\x1b[2Jgone"})
    world.outcomes["failed"] = bad
    world.fill(lambda log: world.dispatch(log, event, "failed"))
    code, out, _ = world.run("graph", event.id)
    assert code == 0
    assert "\\x1b[2Jgone" in out
    assert "\x1b" not in out


def ingested(world: Any, *events: Any) -> None:
    from harn_temporal.ingestion import ingest
    from harn_temporal.registry import register

    async def work(log: Any) -> None:
        bindings = await register(log, "demo", [world.binding()])
        for event in events:
            await ingest(log, bindings, event, package="demo")

    world.fill(work)


def test_an_unknown_event_names_the_nearest(world: Any) -> None:
    event = world.event()
    ingested(world, event, *(world.event() for _ in range(3)))
    world.fill(lambda log: world.dispatch(log, event, "fine"))
    other = {"0": "1"}
    for place in (-1, -20, 12):  # at its end, before the middle, where the UUID begins
        id_ = event.id
        mistyped = (
            id_[:place] + other.get(id_[place], "0") + (id_[place + 1 :] if place + 1 else "")
        )
        code, out, err = world.run("graph", mistyped)
        assert (code, out) == (2, "")
        assert f"no dispatch of an event {mistyped}. Did you mean {event.id}" in err
    code, _, err = world.run("graph", event.id[-8:])
    assert (code, f"Did you mean {event.id}?" in err) == (2, True)
    code, _, err = world.run("graph", "nothing-like-it")
    assert (code, "`harn-temporal trigger show ID` lists the latest" in err) == (2, True)


def test_an_event_in_the_inbox_is_told_from_one_that_is_not_there(world: Any) -> None:
    event = world.event()
    ingested(world, event)
    code, _, err = world.run("graph", event.id)
    assert code == 2
    assert "is in the inbox, and its dispatch has not begun" in err


def test_only_the_updates_of_the_event_are_read(world: Any) -> None:
    """However many there are of others, before and after it."""
    early, late = world.event(), world.event()
    asked: list[tuple[str, int]] = []

    async def work(log: Any) -> Any:
        await world.dispatch(log, early, "failed", "dead")
        for _ in range(8):
            await world.dispatch(log, world.event(), "fine")
        await world.dispatch(log, late, "fine")
        await world.dispatch(log, early, "fine", replay=1)
        read = StoreReader.read

        def counted(reader: Any, topic: str, after: int = 0, limit: int = 1000) -> Any:
            asked.append((topic, limit))
            return read(reader, topic, after, limit)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(StoreReader, "read", counted)
            return [len((await event_graph(log, each.id)).merged.nodes) for each in (early, late)]

    assert world.fill(work) == [5, 2]
    updates = 7 + 3, 3  # of two attempts and their ends, with the replay's; of one attempt
    assert asked == [(ACTION_GRAPH, 1)] * sum(updates)


def test_a_replay_of_harn_is_found_by_what_it_replays(world: Any) -> None:
    event = world.event()
    update = {
        "context": {"replay_of_event_id": event.id},
        "observability": {"action_graph_nodes": [{"id": "harns"}], "action_graph_edges": []},
    }

    async def work(log: Any) -> None:
        await world.dispatch(log, event, "fine")
        record = Append(ACTION_GRAPH, "action_graph_update", update, {"event_id": "another"})
        await log.append([record])

    world.fill(work)
    assert "harns" in nodes_named(world.json("graph", event.id))
    assert nodes_named(world.json("graph", "another")) == ["harns"]


def nodes_named(graph: Any) -> list[str]:
    return [node["id"] for node in graph["nodes"]]


def test_an_id_from_the_future_is_found_all_the_same(world: Any) -> None:
    ahead = world.at_ms + 5 * 3_600_000
    event = world.event(clock=lambda: ahead)
    world.fill(lambda log: world.dispatch(log, event, "fine"))
    assert len(world.json("graph", event.id)["nodes"]) == 2


def test_what_others_wrote_wrongly_is_passed_by(world: Any) -> None:
    event = world.event()
    headers = {"event_id": event.id, "trace_id": event.trace_id}
    circle = [{"from_id": "a", "to_id": "b"}, {"from_id": "b", "to_id": "a"}]
    part = {"action_graph_nodes": [{"id": "a"}, {"id": "b"}, 7, {}], "action_graph_edges": circle}
    payloads: list[Any] = [None, [], {"observability": 3}, {"observability": part}]

    async def work(log: Any) -> None:
        await log.append(
            [Append(ACTION_GRAPH, "action_graph_update", p, headers) for p in payloads]
        )

    world.fill(work)
    graph = world.json("graph", event.id)
    assert graph["nodes"] == [{"id": "a"}, {"id": "b"}]
    assert graph["dispatches"][0]["workflow_id"] is None
    code, out, _ = world.run("graph", event.id)
    assert (code, "Harn's dispatches" in out) == (0, True)
    assert world.run("graph", event.id, "--format", "mermaid")[0] == 0


@pytest.mark.parametrize(
    "workflow_id", ["dispatch/p/trigger/1", "dispatch/p/t/e/replay/2", "job/q/1/c"]
)
def test_the_workflow_of_a_key(workflow_id: str) -> None:
    keys = [
        start_key(workflow_id, "run", 3),
        pending_key(workflow_id, "run", 3),
        end_key(workflow_id, 3),
        trigger_key(workflow_id),
    ]
    assert {workflow_of(key) for key in keys} == {workflow_id}
    assert {workflow_of(f"{key}/4") for key in keys} == {workflow_id}
    assert workflow_of("something else") is None


def test_help_names_the_formats(world: Any) -> None:
    code, out, _ = world.run("graph", "--help")
    assert code == 0
    assert re.search(r"terminal\|mermaid\|json", out)
