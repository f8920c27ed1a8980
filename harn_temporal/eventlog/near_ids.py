"""Ids like one that does not exist, found without a look at all of them one by one."""

from __future__ import annotations

import difflib

from harn_temporal.eventlog.statements import Statements

NEIGHBOURS = 50
"""Ids on each side, in their order: one of them is meant where the end of it was mistyped."""

PART = 12
"""Characters at the end that are looked for within ids: they hold where its beginning is wrong."""

NAMED = 3


def near_ids(statements: Statements, table: str, wanted: str) -> list[str]:
    """At most three, the nearest first.

    `table` is the prefix of the statements `below`, `above` and `holding`, which give ids.
    """
    if not wanted:
        return []
    holding = statements.rows(f"{table}.holding", part=wanted[-PART:], limit=NEIGHBOURS)
    found = [row[0] for row in holding]
    longer = [each for each in found if wanted in each]
    if longer:
        return longer[:NAMED]
    for side in ("below", "above"):
        found += [row[0] for row in statements.rows(f"{table}.{side}", id=wanted, limit=NEIGHBOURS)]
    return difflib.get_close_matches(wanted, dict.fromkeys(found), n=NAMED, cutoff=0.8)
