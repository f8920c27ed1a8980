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

STEPS = (
    "harn_temporal.workflows.activity_types",
    "harn_temporal.workflows.attempt_fate",
    "harn_temporal.workflows.consume_jobs",
    "harn_temporal.workflows.consume_steps",
    "harn_temporal.workflows.consumer_link",
    "harn_temporal.workflows.dispatch_page",
    "harn_temporal.workflows.dispatch_steps",
    "harn_temporal.workflows.follow_pace",
    "harn_temporal.workflows.job_dispatch",
)
"""What workflows are made of, beside the modules that define them. It keeps no state either."""


def workflow_runner(*, strict: bool = False) -> SandboxedWorkflowRunner:
    """The runner for workers; `strict` is for replays.

    A module that is not shared is imported anew for each run, which for all of them together costs
    several times what the rest of a dispatch does. So a worker imports the module that defines the
    workflow only, and that the steps call nothing that differs from run to run is held where
    histories are replayed: there they are imported into the sandbox, which refuses such calls.
    """
    shared = MODELS if strict else (*MODELS, *STEPS)
    return SandboxedWorkflowRunner(
        restrictions=SandboxRestrictions.default.with_passthrough_modules(*shared)
    )
