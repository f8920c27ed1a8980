"""How queues are shared, as commands read it from the environment."""

from __future__ import annotations

import os

from harn_temporal.cli.output import warn
from harn_temporal.scheduler.policy import Policy, read_policy


def scheduler_policy() -> Policy:
    """Warns of each variable that cannot be read and counts as unset."""
    policy, warnings = read_policy(os.environ)
    for warning in warnings:
        warn(warning)
    return policy
