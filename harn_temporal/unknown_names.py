"""What is said of a name that a store does not know: the names that may have been meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

NEAR = 3
LISTED = 10


def unknown_name(what: str, wanted: str, known: Iterable[str], none: str = "none") -> str:
    """`what` is of which kind it is; `none` says more about a store that knows no name at all."""
    names = sorted(set(known))
    near = get_close_matches(wanted, names, n=NEAR)
    if near:
        return f"no {what} {wanted!r} in this store. Did you mean {' or '.join(near)}?"
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    listed = ", ".join(names[:LISTED]) or none
    return f"no {what} {wanted!r} in this store. It knows: {listed}{more}"
