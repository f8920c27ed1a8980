"""The bindings of a store, with the figures of their dispatches."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from harn_temporal.clock import rfc3339
from harn_temporal.errors import NotFoundError
from harn_temporal.eventlog.bindings import StoredBinding
from harn_temporal.eventlog.log import EventLog, Reader
from harn_temporal.eventlog.outbox import OutboxDispatch
from harn_temporal.inspection.dispatches import Figures, dispatch_json, figures_by_binding
from harn_temporal.unknown_names import unknown_name


@dataclass(frozen=True, slots=True)
class BindingView:
    """A version of a trigger, and what became of the events it was given."""

    binding: StoredBinding
    figures: Figures

    def to_json(self) -> dict[str, Any]:
        binding = self.binding
        return {
            "trigger_id": binding.trigger_id,
            "binding_key": binding.binding_key,
            "version": binding.version,
            "package": binding.package or None,
            "state": binding.state,
            "provider": binding.provider,
            "kind": binding.kind,
            "handler_kind": binding.handler_kind,
            "fingerprint": binding.fingerprint,
            "changed_at": rfc3339(binding.changed_at_ms),
            "figures": self.figures.to_json(),
        }


@dataclass(frozen=True, slots=True)
class TriggerView:
    """`versions` has the newest last; `definition` is that one's, None where Harn wrote it."""

    trigger_id: str
    versions: tuple[BindingView, ...]
    definition: dict[str, Any] | None
    latest: tuple[OutboxDispatch, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "trigger_id": self.trigger_id,
            "versions": [version.to_json() for version in self.versions],
            "definition": self.definition,
            "latest": [dispatch_json(dispatch) for dispatch in self.latest],
        }


async def bindings(log: EventLog) -> list[BindingView]:
    """Every version of every trigger, by package, trigger and version."""
    return await log.query(lambda reader: _views(reader, reader.bindings.states()))


async def trigger(log: EventLog, wanted: str, *, latest: int) -> TriggerView:
    """A trigger by its id, or one version of it by its binding key, with `latest` dispatches.

    Raises NotFoundError, which names the nearest ids.
    """

    def look_up(reader: Reader) -> TriggerView:
        states = reader.bindings.states()
        found = [state for state in states if wanted in {state.trigger_id, state.binding_key}]
        if not found:
            raise NotFoundError(_unknown(wanted, states))
        newest = max(found, key=lambda state: state.version)
        return TriggerView(
            newest.trigger_id,
            tuple(_views(reader, sorted(found, key=lambda state: state.version))),
            reader.bindings.definition(newest.trigger_id, newest.version),
            tuple(_latest(reader, {state.binding_key for state in found}, latest)),
        )

    return await log.query(look_up)


def _views(reader: Reader, states: Sequence[StoredBinding]) -> list[BindingView]:
    figures = figures_by_binding(reader.outbox.figures())
    return [BindingView(state, figures.get(state.binding_key, Figures())) for state in states]


def _latest(reader: Reader, binding_keys: Collection[str], limit: int) -> list[OutboxDispatch]:
    """The newest last."""
    found = [each for key in binding_keys for each in reader.outbox.latest(key, limit)]
    return sorted(found, key=lambda each: (each.at_ms, each.event_id, each.workflow_id))[-limit:]


def _unknown(wanted: str, states: list[StoredBinding]) -> str:
    names = (state.trigger_id for state in states)
    none = "none yet; `harn-temporal up` registers those of the manifest"
    return unknown_name("trigger", wanted, names, none)
