"""A binding: what a trigger of a manifest means for a dispatch, frozen at a version."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from harn_temporal.gates.models import Gates
from harn_temporal.retry import RetryPolicy

HandlerKind = Literal["local", "a2a", "worker"]
Priority = Literal["high", "normal", "low"]

DEFAULT_TIMEOUT_MS = 600_000
DEFAULT_FOLLOW_TIMEOUT_MS = 3_600_000
DEFAULT_POLL_MS = 5_000


class HandlerTarget(BaseModel):
    """Where a dispatch goes. `uri` is the manifest's own word, and the records' `target_uri`."""

    model_config = ConfigDict(frozen=True)

    kind: HandlerKind
    uri: str


class When(BaseModel):
    """A predicate: a function of the manifest's handlers (`kind="function"`), or CEL."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["function", "cel"]
    source: str


class FollowTask(BaseModel):
    """How a task of an A2A agent is followed.

    For `timeout_ms` in all, asking first after `poll_ms` and then at growing intervals.
    """

    model_config = ConfigDict(frozen=True)

    timeout_ms: int = Field(default=DEFAULT_FOLLOW_TIMEOUT_MS, gt=0)
    poll_ms: int = Field(default=DEFAULT_POLL_MS, gt=0)


class Binding(BaseModel):
    """A snapshot that a dispatch carries, so that it ends under the version it began with.

    `version` is 0 until the binding is registered with a store. New fields need a default:
    snapshots lie in running workflows and in the log.
    """

    model_config = ConfigDict(frozen=True)

    package: str
    trigger_id: str
    version: int = 0
    kind: str
    provider: str
    events: tuple[str, ...] = ()
    """Exact event kinds; empty matches every kind of the provider."""
    handler: HandlerTarget
    when: When | None = None
    filter: str | None = None
    dedupe_key: str | None = None
    retry: RetryPolicy = RetryPolicy()
    priority: Priority = "normal"
    timeout_ms: int = Field(default=DEFAULT_TIMEOUT_MS, gt=0)
    allow_cleartext: bool = False
    follow: FollowTask | None = None
    """For `a2a://`: follow a task that is pending; None takes its handle as the result."""
    bearer_env: str | None = None
    """For `a2a://`: the environment variable that holds the agent's token."""
    gates: Gates | None = None
    """What may hold its dispatches back; None for nothing."""
    fingerprint: str
    """SHA-256 over the trigger's normalized definition, without package and version."""

    @property
    def binding_key(self) -> str:
        return f"{self.trigger_id}@v{self.version}" if self.version else self.trigger_id

    def matches(self, provider: str, kind: str) -> bool:
        return provider == self.provider and (not self.events or kind in self.events)
