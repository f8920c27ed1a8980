"""The action graph of one event, folded from the updates that dispatches append to it.

A node that appears again under its id replaces what was known of it. A replay carries the event's
own id, so its nodes have the ids of those it replays: each dispatch is folded by itself as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harn_temporal.dispatch_records.keys import workflow_of
from harn_temporal.errors import NotFoundError, StoreError
from harn_temporal.eventlog.log import EventLog, Reader, Record
from harn_temporal.eventlog.topics import ACTION_GRAPH
from harn_temporal.headers import IDEMPOTENCY_KEY

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
    for record in await log.query(lambda reader: _updates(reader, event_id)):
        graph.fold(record)
    if not graph.dispatches:
        raise NotFoundError(await log.query(lambda reader: _unknown(reader, event_id)))
    return graph


def _updates(reader: Reader, event_id: str) -> list[Record]:
    return [
        record
        for record_id in reader.event_index.updates(event_id)
        for record in reader.read(ACTION_GRAPH, record_id - 1, 1)
        if record.event_id == record_id
    ]


def _unknown(reader: Reader, event_id: str) -> str:
    """Why nothing is known: the event waits for its dispatch, or there is no such event."""
    if reader.event_index.of_event(event_id):
        return (
            f"event {event_id} is in the inbox, and its dispatch has not begun; "
            "`harn-temporal doctor` says whether a worker pumps"
        )
    near = reader.event_index.near(event_id)
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
