"""The action graph drawn: as a tree for a terminal, and as a mermaid flowchart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from harn_temporal.inspection.graph import DispatchGraph, EventGraph, Graph

Json = dict[str, Any]

LABEL_LIMIT = 80
REPLAY_CHAIN = "replay_chain"

_MARKUP = {
    "&": "#amp;",
    '"': "#quot;",
    "<": "#lt;",
    ">": "#gt;",
    "`": "#96;",
    "#": "#35;",
    "|": "#124;",
    "\\": "#92;",
    "*": "#42;",
    "_": "#95;",
}
"""Mermaid's entities: a label may hold Markdown and HTML, and a payload's text must stay text."""


@dataclass(slots=True)
class Branch:
    """A node of the tree. `edge` says how it was come to, where that says more than its kind."""

    node: Json
    edge: str | None = None
    branches: list[Branch] = field(default_factory=list)


def title(node: Json) -> str:
    """What a node is, on one line: kind, label, how it stands."""
    kind, label, status, outcome = (
        _text(node.get(name)) for name in ("kind", "label", "status", "outcome")
    )
    number = _mapping(node.get("metadata")).get("attempt")
    attempt = f" {number}" if isinstance(number, int) and kind not in {"retry", "dlq"} else ""
    state = status if outcome in {"", status} else f"{status}, {outcome}"
    name = _cut(label) if label.startswith(kind) else f"{kind}{attempt} {_cut(label)}"
    return f"{name} [{state}]"


def error_of(node: Json) -> str | None:
    """What went wrong at a node, where something did."""
    metadata = _mapping(node.get("metadata"))
    for name in ("error", "final_error", "reason"):
        if isinstance(metadata.get(name), str) and node.get("kind") != "retry":
            return str(metadata[name])
    return None


def tree(dispatch: DispatchGraph) -> list[Branch]:
    """The nodes of a dispatch below those that led to them, each once; usually one root."""
    graph = dispatch.graph
    edges = [edge for edge in graph.edges if edge["from_id"] != edge["to_id"]]
    shown: set[str] = set()

    def grow(node_id: str, edge: str | None) -> Branch:
        shown.add(node_id)
        branch = Branch(graph.nodes[node_id], edge)
        for each in edges:
            target = each["to_id"]
            if each["from_id"] == node_id and target in graph.nodes and target not in shown:
                branch.branches.append(grow(target, _edge_label(each)))
        return branch

    entered = {edge["to_id"] for edge in edges if edge["from_id"] in graph.nodes}
    roots = [grow(node_id, None) for node_id in graph.nodes if node_id not in entered]
    # Whatever is left is a circle, which only somebody else can have written.
    roots += [grow(node_id, None) for node_id in graph.nodes if node_id not in shown]
    return roots


def mermaid(graph: EventGraph) -> str:
    """A flowchart. A replay is drawn beside what it replays, with an edge between them."""
    lines = ["flowchart TD", *_mermaid_lines(graph)]
    return "\n".join(lines) + "\n"


def _mermaid_lines(graph: EventGraph) -> Iterator[str]:
    names: dict[tuple[int | None, str], str] = {}
    first = [each for each in graph.dispatches.values() if each.replay is None]
    replays = [each for each in graph.dispatches.values() if each.replay is not None]
    groups: list[tuple[int | None, Graph]] = []
    if first:
        together = Graph()
        for each in first:
            together.nodes |= each.graph.nodes
            together.edges += [edge for edge in each.graph.edges if edge not in together.edges]
        groups.append((None, together))
    groups += [(place, each.graph) for place, each in enumerate(replays)]
    for place, of in groups:
        for node_id, node in of.nodes.items():
            name = names[place, node_id] = f"n{len(names)}"
            yield f'  {name}["{_escaped(title(node))}"]'
        for edge in of.edges:
            yield from _mermaid_edge(edge, names, place)


def _mermaid_edge(
    edge: Json, names: dict[tuple[int | None, str], str], place: int | None
) -> Iterator[str]:
    source, target = edge["from_id"], edge["to_id"]
    # A replay of ours has the id of what it replays; that one is among the first dispatches.
    from_place = None if edge.get("kind") == REPLAY_CHAIN and source == target else place
    begin, end = names.get((from_place, source)), names.get((place, target))
    if begin is None or end is None or begin == end:
        return
    label = _edge_label(edge)
    yield f'  {begin} -->|"{_escaped(label)}"| {end}' if label else f"  {begin} --> {end}"


def _edge_label(edge: Json) -> str | None:
    """The label, or a kind that the nodes at its ends do not tell of already."""
    label = edge.get("label")
    if isinstance(label, str) and label:
        return label
    return "replay chain" if edge.get("kind") == REPLAY_CHAIN else None


def _escaped(text: str) -> str:
    plain = "".join(char if char.isprintable() else " " for char in text)
    return "".join(_MARKUP.get(char, char) for char in plain)


def _cut(text: str) -> str:
    return text if len(text) <= LABEL_LIMIT else f"{text[: LABEL_LIMIT - 1]}…"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _mapping(value: Any) -> Json:
    return value if isinstance(value, dict) else {}
