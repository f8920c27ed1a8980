"""What a pump has done and sees, as plain numbers; telemetry takes them from here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Admission:
    """A dispatch that the pump has just admitted. Times are milliseconds since the epoch."""

    trigger_id: str
    binding_key: str
    provider: str
    """Of the event."""
    tenant_id: str | None
    workflow_id: str
    accepted_at_ms: int
    """When the event was received, as its envelope says."""
    appended_at_ms: int
    """When the envelope was appended."""
    admitted_at_ms: int
    started_at_ms: int
    """When Temporal had taken it."""


@dataclass(slots=True)
class PumpFigures:
    """Counters only grow, from the start of the worker on; gauges are of the last look.

    A worker whose pump is not the elected one has zeros. `on_admission` is called for each
    dispatch that was admitted and started; it must be quick and must not raise.
    """

    max_outstanding: int
    received: int = 0
    """Envelopes of this package that were read."""
    eligible: int = 0
    """Dispatches they ask for: one each, or one for each matching binding of an adopted one."""
    admitted: int = 0
    started: int = 0
    completed: int = 0
    """Dispatches that ended, and whose end the pump has recorded."""
    malformed: int = 0
    """Envelopes that no dispatch could be made of."""
    passed: int = 0
    """Records of the inbox that are not this package's."""
    swept: int = 0
    """Dispatches that were given their end because their workflow was gone."""
    running: bool = False
    """Whether the pump of the package runs here."""
    outstanding: int = 0
    backlog: int = 0
    """Envelopes of this package that no dispatch was started for."""
    oldest_pending_at_ms: int = 0
    """When the oldest of them was appended; 0 where there are none."""
    full: bool = False
    """Nothing is read, because too many dispatches are outstanding."""
    on_admission: Callable[[Admission], None] | None = field(default=None, repr=False)
