"""The sandbox in which workflows run, and what they share with the process around it."""

from __future__ import annotations

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
    "harn_temporal.ids",
    "harn_temporal.providers",
    "harn_temporal.redaction",
    "harn_temporal.retry",
)
"""Modules of models and plain functions: shared by all runs, since they keep no state."""

EVERYTHING = ("harn_temporal",)


def workflow_runner(*, strict: bool = False) -> SandboxedWorkflowRunner:
    """The runner for workers; `strict` is for replays.

    A module that is not shared is imported anew for each run, which costs several times what the
    rest of a dispatch does. Workflows of a worker are this package's own, so it shares all of it.
    That they call nothing that differs from run to run is held where histories are replayed: there
    their modules are imported into the sandbox, which refuses such calls.
    """
    shared = MODELS if strict else EVERYTHING
    return SandboxedWorkflowRunner(
        restrictions=SandboxRestrictions.default.with_passthrough_modules(*shared)
    )
