"""The action graph of one event, folded from the updates that dispatches append to it.

A node that appears again under its id replaces what was known of it. A replay carries the event's
own id, so its nodes have the ids of those it replays: each dispatch is folded by itself as well.
"""

from __future__ import annotations

import difflib
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from harn_temporal.dispatch_records.keys import workflow_of
from harn_temporal.errors import NotFoundError, StoreError
from harn_temporal.eventlog.log import EventLog, Reader, Record
from harn_temporal.eventlog.topics import ACTION_GRAPH
from harn_temporal.headers import IDEMPOTENCY_KEY
from harn_temporal.inspection.paging import records_of

CLOCK_SKEW_MS = 60 * 60 * 1000
"""Updates are looked for from so long before the event was made: hosts' clocks differ."""

REMEMBERED = 2000
"""Ids of other events that a mistyped one is compared with."""

NODE_KEYS = (
    "id", "label", "kind", "status", "outcome", "trace_id", "stage_id", "node_id", "worker_id",
    "run_id", "run_path", "metadata",
)  # fmt: skip
EDGE_KEYS = ("from_id", "to_id", "kind", "label")

Json = dict[str, Any]


@dataclass(slots=True)
class Graph:
    """Nodes by id in the order in which they first appeared, and edges, each once."""

    nodes: dict[str, Json] = field(default_factory=dict)
    edges: list[Json] = field(default_factory=list)

    def fold(self, update: Json) -> None:
        for node in _objects(update, "action_graph_nodes"):
            if isinstance(node.get("id"), str):
                self.nodes[node["id"]] = node
        for edge in _objects(update, "action_graph_edges"):
            ends = (edge.get("from_id"), edge.get("to_id"))
            if all(isinstance(end, str) for end in ends) and edge not in self.edges:
                self.edges.append(edge)

    def to_json(self) -> Json:
        return {
            "nodes": [_ordered(node, NODE_KEYS) for node in self.nodes.values()],
            "edges": [_ordered(edge, EDGE_KEYS) for edge in self.edges],
        }


@dataclass(slots=True)
class DispatchGraph:
    """What one dispatch added. `workflow_id` is None for those of Harn, taken together.

    `replay` says which replay of the event and trigger it is, None for none.
    """

    workflow_id: str | None
    replay: int | None
    graph: Graph = field(default_factory=Graph)

    def to_json(self) -> Json:
        return {"workflow_id": self.workflow_id, "replay": self.replay, **self.graph.to_json()}


@dataclass(slots=True)
class EventGraph:
    """`merged` is what any reader of the topic folds, `dispatches` the same taken apart."""

    event_id: str
    trace_id: str | None = None
    merged: Graph = field(default_factory=Graph)
    dispatches: dict[str | None, DispatchGraph] = field(default_factory=dict)

    def fold(self, record: Record) -> None:
        update = _mapping(_payload(record).get("observability"))
        key = record.headers.get(IDEMPOTENCY_KEY)
        workflow_id = None if key is None else workflow_of(key)
        if workflow_id not in self.dispatches:
            replay = None if workflow_id is None else _replay(workflow_id)
            self.dispatches[workflow_id] = DispatchGraph(workflow_id, replay)
        self.trace_id = self.trace_id or record.headers.get("trace_id")
        self.merged.fold(update)
        self.dispatches[workflow_id].graph.fold(update)

    def to_json(self) -> Json:
        return {
            "event_id": self.event_id,
            "trace_id": self.trace_id,
            **self.merged.to_json(),
            "dispatches": [dispatch.to_json() for dispatch in self.dispatches.values()],
        }


def _replay(workflow_id: str) -> int | None:
    _, separator, number = workflow_id.rpartition("/replay/")
    return int(number) if separator and number.isascii() and number.isdecimal() else None


async def event_graph(log: EventLog, event_id: str) -> EventGraph:
    """The graph of an event as it stands. Raises NotFoundError, which names the nearest ids.

    The updates of replays that Harn gave an id of their own are part of it.
    """
    graph = EventGraph(event_id)
    start = await log.query(lambda reader: _start(reader, event_id))
    others = await _fold_from(log, graph, start)
    if not graph.dispatches and start:  # an id that promises a time after its own updates
        others = await _fold_from(log, graph, 0)
    if not graph.dispatches:
        raise NotFoundError(await log.query(lambda reader: _unknown(reader, event_id, others)))
    return graph


async def _fold_from(log: EventLog, graph: EventGraph, start: int) -> list[str]:
    """Fold what is about the event; returns the last ids of other events."""
    others: dict[str, None] = {}
    async for record, about in _updates(log, graph.event_id, start):
        if about:
            graph.fold(record)
        elif (other := record.headers.get("event_id")) is not None:
            others.pop(other, None)
            others[other] = None
            if len(others) > REMEMBERED:
                del others[next(iter(others))]
    return list(others)


async def _updates(log: EventLog, event_id: str, start: int) -> AsyncIterator[tuple[Record, bool]]:
    quoted = f'"replay_of_event_id":"{event_id}"'.encode()
    async for record in records_of(log, ACTION_GRAPH, start):
        about = record.headers.get("event_id") == event_id
        if not about and quoted in record.raw:
            about = _mapping(_payload(record).get("context")).get("replay_of_event_id") == event_id
        yield record, about


def _start(reader: Reader, event_id: str) -> int:
    """The id after which the updates of an event may lie, by the time in its UUIDv7."""
    made_at_ms = _made_at_ms(event_id)
    if made_at_ms is None:
        return 0
    low, high = 0, reader.head(ACTION_GRAPH)
    while low < high:
        middle = (low + high) // 2
        found = reader.read(ACTION_GRAPH, middle, 1)
        if found and found[0].occurred_at_ms < made_at_ms - CLOCK_SKEW_MS:
            low = max(found[0].event_id, middle + 1)
        else:
            high = middle
    return low


def _made_at_ms(event_id: str) -> int | None:
    try:
        made = uuid.UUID(event_id.rpartition("_")[2])
    except ValueError:
        return None
    return made.int >> 80 if made.version == 7 else None  # noqa: PLR2004 - the UUID's version


def _unknown(reader: Reader, event_id: str, others: list[str]) -> str:
    """Why nothing is known: the event waits for its dispatch, or there is no such event."""
    packages = sorted({state.package for state in reader.bindings.states()})
    for package in packages:
        for dispatch in reader.dispatches.waiting(package):
            if dispatch.workflow_id.endswith(f"/{event_id}"):
                return (
                    f"event {event_id} is in the inbox, and its dispatch has not begun; "
                    "`harn-temporal doctor` says whether a worker pumps"
                )
    near = [other for other in reversed(others) if event_id and event_id in other][:3]
    near = near or difflib.get_close_matches(event_id, others, n=3, cutoff=0.8)
    if near:
        return f"no dispatch of an event {event_id}. Did you mean {' or '.join(near)}?"
    return f"no dispatch of an event {event_id}. `harn-temporal trigger show ID` lists the latest"


def _ordered(found: Json, keys: tuple[str, ...]) -> Json:
    """For people: the log keeps keys sorted. What others added comes last."""
    return {name: found[name] for name in keys if name in found} | found


def _objects(update: Json, name: str) -> list[Json]:
    """Anyone may write into the topic; what is no list of objects is nothing."""
    found = update.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _payload(record: Record) -> Json:
    try:
        return _mapping(record.payload)
    except StoreError:
        return {}


def _mapping(value: Any) -> Json:
    return value if isinstance(value, dict) else {}
