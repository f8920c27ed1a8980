"""What an expression reads, found out without running it.

A path is the names that lead from the outermost variable to a value: `event.headers["x-a"]` has
the path `("event", "headers", "x-a")`. The last name may be the beginning of something larger
(`event.items[0].id` ends at `items`): a path says what is read at least, never too much.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Path = tuple[str, ...]

_TOKEN = re.compile(
    r"""
      (?P<space>\s+|//[^\n]*)
    | (?P<string>[rRbB]{0,2}(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''
        |\"(?:\\.|[^"\\\n])*\"|'(?:\\.|[^'\\\n])*'))
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<number>[0-9][0-9A-Za-z.]*)
    | (?P<mark>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_CEL_MACROS = frozenset({"all", "exists", "exists_one", "existsOne", "map", "filter"})

Token = tuple[str, str]


def cel_paths(source: str) -> list[Path]:
    """The paths of a CEL source that compiles, in the order in which they stand there."""
    tokens = list(_cel_tokens(source))
    found: list[Path] = []
    for index, (kind, text) in enumerate(tokens):
        after_dot = index > 0 and tokens[index - 1] == ("mark", ".")
        if kind == "name" and not after_dot and text not in {"true", "false", "null", "in"}:
            found.append((text, *_cel_selectors(tokens, index + 1)))
    return found


def cel_bound_names(source: str) -> set[str]:
    """The names that the macros of a CEL source bind, as `x` in `event.items.exists(x, x > 1)`."""
    tokens = list(_cel_tokens(source))
    return {
        tokens[index + 2][1]
        for index in range(len(tokens) - 3)
        if tokens[index][1] in _CEL_MACROS
        and tokens[index + 1] == ("mark", "(")
        and tokens[index + 2][0] == "name"
        and tokens[index + 3] == ("mark", ",")
    }


def jmespath_paths(tree: Mapping[str, Any]) -> list[Path]:
    """The paths of a JMESPath syntax tree, as `jmespath.compile(…).parsed` gives it."""
    found: list[Path] = []
    _walk(tree, (), found)
    return found


def negates_too_little(tree: Mapping[str, Any]) -> bool:
    """Whether a JMESPath tree selects from a negation, which is a boolean and has no fields."""
    children = tree["children"]
    selects = tree["type"] in {"subexpression", "index_expression"}
    if selects and children[0]["type"] == "not_expression":
        return True
    return any(negates_too_little(child) for child in children)


def headers_named(paths: Sequence[Path]) -> set[str]:
    """The headers of the event that the paths name, as they are spelled there."""
    return {path[2] for path in paths if path[:2] == ("event", "headers") and len(path) > 2}  # noqa: PLR2004 - event, headers, the name


def _cel_tokens(source: str) -> Iterator[Token]:
    for match in _TOKEN.finditer(source):
        kind = match.lastgroup or "mark"
        if kind != "space":
            yield kind, match.group()


def _cel_selectors(tokens: Sequence[Token], index: int) -> Iterator[str]:
    """The names selected from what ends before `index`: `.name` and `["name"]`, not `.call(`."""
    while index < len(tokens):
        mark = tokens[index][1] if tokens[index][0] == "mark" else ""
        following = [token for _, token in tokens[index + 1 : index + 3]]
        if mark == "." and len(following) > 0 and tokens[index + 1][0] == "name":
            if following[1:] == ["("]:
                return
            yield following[0]
            index += 2
        elif mark == "[" and following[1:] == ["]"] and tokens[index + 1][0] == "string":
            name = _string_value(following[0])
            if name is None:
                return
            yield name
            index += 3
        else:
            return


def _string_value(literal: str) -> str | None:
    """The value of a CEL string; None for bytes. CEL knows its own escapes best."""
    import cel

    value = cel.evaluate(literal)
    return value if isinstance(value, str) else None


def _walk(node: Mapping[str, Any], at: Path | None, found: list[Path]) -> Path | None:
    """Note each path that `node` reads; return the one it ends at, None where it is not known.

    `at` is the path of the value that `node` is applied to.
    """
    kind, children = node["type"], node["children"]
    if kind == "field":
        if at is None:
            return None
        path = (*at, str(node["value"]))
        found.append(path)
        return path
    if kind == "current":
        return at
    if kind in {"subexpression", "pipe", "index_expression"}:
        for child in children:
            at = _walk(child, at, found)
        return at
    if kind in {"projection", "value_projection", "filter_projection", "flatten"}:
        _walk(children[0], at, found)
        for child in children[1:]:
            _walk(child, None, found)
        return None
    inner = None if kind == "expref" else at
    for child in children:
        _walk(child, inner, found)
    return None
