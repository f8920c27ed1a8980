"""Harn's trigger dispatcher and worker queues, hosted on Temporal.

What the author of a handler may import stands here. It is loaded on first use, so that
`import harn_temporal` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harn_temporal.context import HandlerContext
    from harn_temporal.errors import Denied, Waiting
    from harn_temporal.events import TriggerEvent

__all__ = ["Denied", "HandlerContext", "TriggerEvent", "Waiting"]

_HOMES = {
    "Denied": "harn_temporal.errors",
    "HandlerContext": "harn_temporal.context",
    "TriggerEvent": "harn_temporal.events",
    "Waiting": "harn_temporal.errors",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
