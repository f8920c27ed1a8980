"""How workflows run: as they are on a worker, in the sandbox where histories are replayed."""

from __future__ import annotations

from temporalio.worker import UnsandboxedWorkflowRunner, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

MODELS = (
    "harn_temporal.bindings",
    "harn_temporal.canonical",
    "harn_temporal.clock",
    "harn_temporal.consume_contracts",
    "harn_temporal.contracts",
    "harn_temporal.durations",
    "harn_temporal.errors",
    "harn_temporal.events",
    "harn_temporal.gate_contracts",
    "harn_temporal.gates",
    "harn_temporal.ids",
    "harn_temporal.providers",
    "harn_temporal.redaction",
    "harn_temporal.retry",
)
"""Modules of models and plain functions: shared by all runs, since they keep no state."""


def workflow_runner(*, strict: bool = False) -> WorkflowRunner:
    """The runner for workers; `strict` is for replays.

    Temporal's sandbox imports the modules of a workflow anew for each run, so as to refuse calls
    that differ from run to run. That costs more than all the rest of a dispatch, and a worker's
    workflows are this package's own: so it is held where histories are replayed, by the sandbox,
    that they make no such call, and a worker runs them as they are.
    """
    if not strict:
        return UnsandboxedWorkflowRunner()
    return SandboxedWorkflowRunner(
        restrictions=SandboxRestrictions.default.with_passthrough_modules(*MODELS)
    )
