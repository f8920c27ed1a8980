"""For authors of manifests and handlers: dispatch events in a test, without a server.

The steps are those of a worker, on a store in memory and a clock that waits for nothing.
docs/testing.md tells how to use them.
"""

from __future__ import annotations

from harn_temporal.testing.building import cancel, make_context, make_event, read_event
from harn_temporal.testing.fake_clock import FakeClock
from harn_temporal.testing.results import Attempt, Delivery, DispatchResult
from harn_temporal.testing.workbench import AsyncWorkbench, Workbench

__all__ = [
    "AsyncWorkbench",
    "Attempt",
    "Delivery",
    "DispatchResult",
    "FakeClock",
    "Workbench",
    "cancel",
    "make_context",
    "make_event",
    "read_event",
]
