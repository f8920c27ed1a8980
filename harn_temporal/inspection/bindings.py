"""The bindings of a store, with the figures of their dispatches."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

from harn_temporal.clock import rfc3339
from harn_temporal.errors import NotFoundError
from harn_temporal.eventlog.bindings import StoredBinding
from harn_temporal.eventlog.log import EventLog, Reader
from harn_temporal.inspection.dispatches import Dispatch, Figures, dispatches


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
    latest: tuple[Dispatch, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "trigger_id": self.trigger_id,
            "versions": [version.to_json() for version in self.versions],
            "definition": self.definition,
            "latest": [dispatch.to_json() for dispatch in self.latest],
        }


async def bindings(log: EventLog) -> list[BindingView]:
    """Every version of every trigger, by package, trigger and version."""
    states = await log.query(lambda reader: reader.bindings.states())
    figures = (await dispatches(log)).figures
    return [BindingView(state, figures.get(state.binding_key, Figures())) for state in states]


async def trigger(log: EventLog, wanted: str, *, latest: int) -> TriggerView:
    """A trigger by its id, or one version of it by its binding key, with `latest` dispatches.

    Raises NotFoundError, which names the nearest ids.
    """

    def look_up(reader: Reader) -> tuple[list[StoredBinding], dict[str, Any] | None]:
        states = reader.bindings.states()
        found = [state for state in states if wanted in {state.trigger_id, state.binding_key}]
        if not found:
            raise NotFoundError(_unknown(wanted, states))
        newest = max(found, key=lambda state: state.version)
        return found, reader.bindings.definition(newest.trigger_id, newest.version)

    found, definition = await log.query(look_up)
    trigger_id = found[0].trigger_id
    seen = await dispatches(log, {state.binding_key for state in found}, latest)
    versions = sorted(found, key=lambda state: state.version)
    return TriggerView(
        trigger_id,
        tuple(
            BindingView(state, seen.figures.get(state.binding_key, Figures())) for state in versions
        ),
        definition,
        tuple(seen.latest),
    )


def _unknown(wanted: str, states: list[StoredBinding]) -> str:
    names = sorted({state.trigger_id for state in states})
    near = difflib.get_close_matches(wanted, names, n=3)
    if near:
        return f"no trigger {wanted!r} in this store. Did you mean {' or '.join(near)}?"
    known = ", ".join(names) or "none yet; `harn-temporal up` registers those of the manifest"
    return f"no trigger {wanted!r} in this store. It knows: {known}"
