"""The records of a dispatch, as batches to append. Nothing here reads or writes anything.

A batch is appended as a whole under its key (`keys`), so what is tried again appends nothing
twice, and an attempt has one outcome, whoever is the first to write it.
"""

from __future__ import annotations

from harn_temporal.dispatch_records.attempts import attempt_payload, ended, refused, started
from harn_temporal.dispatch_records.dead_letters import closed
from harn_temporal.dispatch_records.decisions import (
    cancelled,
    held_back,
    predicate_evaluated,
    skipped,
)
from harn_temporal.dispatch_records.keys import (
    end_key,
    flow_key,
    pending_key,
    start_key,
    trigger_key,
)
from harn_temporal.dispatch_records.pending import pending
from harn_temporal.dispatch_records.reading import attempt_history, outcome_of
from harn_temporal.verdicts import error_class_of, error_text, verdict

__all__ = [
    "attempt_history",
    "attempt_payload",
    "cancelled",
    "closed",
    "end_key",
    "ended",
    "error_class_of",
    "error_text",
    "flow_key",
    "held_back",
    "outcome_of",
    "pending",
    "pending_key",
    "predicate_evaluated",
    "refused",
    "skipped",
    "start_key",
    "started",
    "trigger_key",
    "verdict",
]
