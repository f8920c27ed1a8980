"""The tables `a2a` and `auth`: how a binding follows tasks of an agent, and proves who it is."""

from __future__ import annotations

import re
from dataclasses import dataclass

from harn_temporal.bindings import DEFAULT_FOLLOW_TIMEOUT_MS, DEFAULT_POLL_MS, FollowTask
from harn_temporal.durations import ALL_UNITS
from harn_temporal.manifest.table import Table

LONGEST_FOLLOW_MS = 7 * 86_400_000

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VARIABLE_ALLOWED = 'the name of an environment variable, such as "REVIEWER_TOKEN"'


@dataclass(frozen=True)
class AgentTable:
    """What `a2a` says; `follow` is None where tasks are not followed."""

    follow: FollowTask | None = None


def read_agent_table(table: Table) -> AgentTable | None:
    """The table, or None where it has a problem."""
    follow = table.flag("follow")
    timeout_ms = table.duration_ms("timeout", ALL_UNITS)
    poll_ms = table.duration_ms("poll", ALL_UNITS)
    table.close()
    if not follow:
        for key in ("timeout", "poll"):
            if table.has(key):
                table.problem(key, "is for tasks that are followed; it needs follow = true")
        return AgentTable()
    if timeout_ms is not None and timeout_ms > LONGEST_FOLLOW_MS:
        table.wrong("timeout", 'a duration of at most "7d"')
        return None
    timeout_ms = timeout_ms or DEFAULT_FOLLOW_TIMEOUT_MS
    if poll_ms is not None and poll_ms > timeout_ms:
        table.wrong("poll", "a duration of at most the timeout")
        return None
    poll_ms = poll_ms or min(DEFAULT_POLL_MS, timeout_ms)
    return AgentTable(FollowTask(timeout_ms=timeout_ms, poll_ms=poll_ms))


def read_bearer_env(table: Table) -> str | None:
    """`bearer_env` of the table `auth`, or None where it has a problem."""
    name = table.required_text("bearer_env", _VARIABLE_ALLOWED)
    table.close()
    if name is None or _VARIABLE.fullmatch(name):
        return name
    # Whoever pastes a token here by mistake must not find it in a log.
    table.problem(
        "bearer_env", f"not shown, since it may be a secret; allowed: {_VARIABLE_ALLOWED}"
    )
    return None
