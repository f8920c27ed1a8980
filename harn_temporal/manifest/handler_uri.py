"""What `handler` and `when` may point to: a function, an A2A agent, a worker queue."""

from __future__ import annotations

import re
from collections.abc import Mapping
from keyword import iskeyword
from urllib.parse import urlsplit

from harn_temporal.bindings import HandlerTarget
from harn_temporal.manifest.problems import nearest, shown
from harn_temporal.manifest.table import Table
from harn_temporal.queue.name_rules import name_problem

_ALLOWED = '"function", "module::function", "a2a://host[:port]/path" or "worker://queue"'
_FUNCTION = re.compile(r"(?:[^\s:\"'()\[\]]+::)?[A-Za-z_][A-Za-z0-9_]*")
_HOST = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")


def reads_as_function(text: str) -> bool:
    """Whether `text` is `name` or `module::name`; CEL's own constants are no names."""
    return bool(_FUNCTION.fullmatch(text)) and text not in {"true", "false", "null"}


def read_handler(table: Table, exports: Mapping[str, str]) -> HandlerTarget | None:
    uri = table.text("handler", _ALLOWED)
    if uri is None:
        return None
    scheme, separator, target = uri.partition("://")
    if not separator:
        valid = check_function(table, "handler", uri, exports)
        return HandlerTarget(kind="local", uri=uri) if valid else None
    if scheme not in {"a2a", "worker"}:
        table.problem(
            "handler", f"{shown(uri)} has the unknown scheme {scheme}://; allowed: {_ALLOWED}"
        )
        return None
    if not target.strip():
        table.problem("handler", f"{shown(uri)} names no target; allowed: {_ALLOWED}")
        return None
    if scheme == "a2a":
        return HandlerTarget(kind="a2a", uri=uri) if _check_agent(table, uri) else None
    return HandlerTarget(kind="worker", uri=uri) if _check_queue(table, target) else None


def check_function(table: Table, key: str, name: str, exports: Mapping[str, str]) -> bool:
    """Whether `name` is well-formed, and its module one that `[exports]` names."""
    module, separator, function = name.rpartition("::")
    if not reads_as_function(name) or iskeyword(function):
        table.wrong(key, _ALLOWED)
        return False
    if separator and module not in exports:
        hint = f"; the nearest one is `{nearest(module, exports)}`" if exports else ""
        table.problem(
            key, f"found {shown(name)}, but [exports] has no module {shown(module)}{hint}"
        )
        return False
    return True


def _check_agent(table: Table, uri: str) -> bool:
    allowed = "a2a://host[:port]/path, without user, query or fragment"
    try:
        parts = urlsplit(uri)
        port_fits = parts.port is None or parts.port > 0
    except ValueError:  # a port that is no number or too high, a bracket left open
        table.wrong("handler", f"{allowed}, the port being from 1 to 65535")
        return False
    host = parts.netloc.rpartition(":")[0] if parts.port is not None else parts.netloc
    fits = bool(_HOST.fullmatch(host)) and not parts.query and not parts.fragment
    if fits and port_fits and not re.search(r"\s", uri):
        return True
    table.wrong("handler", allowed)
    return False


def _check_queue(table: Table, queue: str) -> bool:
    problem = name_problem(queue)
    if problem is not None:
        table.problem("handler", problem)
    return problem is None
