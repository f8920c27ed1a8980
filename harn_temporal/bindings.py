"""A binding: what a trigger of a manifest means for a dispatch, frozen at a version."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from harn_temporal.retry import RetryPolicy

HandlerKind = Literal["local", "a2a", "worker"]
Priority = Literal["high", "normal", "low"]

DEFAULT_TIMEOUT_MS = 600_000


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
    fingerprint: str
    """SHA-256 over the trigger's normalized definition, without package and version."""

    @property
    def binding_key(self) -> str:
        return f"{self.trigger_id}@v{self.version}" if self.version else self.trigger_id

    def matches(self, provider: str, kind: str) -> bool:
        return provider == self.provider and (not self.events or kind in self.events)
