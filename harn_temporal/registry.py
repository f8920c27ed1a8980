"""The registry of bindings: which version a trigger's definition has, and which of them are live.

All of it lies in `state_transition` records. A binding's states are `registering`, `active`,
`draining` and `terminated`; a version that comes back goes through `registering` once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harn_temporal.bindings import Binding
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.bindings import StoredBinding
from harn_temporal.eventlog.log import EventLog, Transaction
from harn_temporal.eventlog.records import Append

REGISTERING = "registering"
ACTIVE = "active"
DRAINING = "draining"
TERMINATED = "terminated"

_TO_ACTIVE: dict[str | None, tuple[str, ...]] = {
    REGISTERING: (ACTIVE,),
    ACTIVE: (),
    DRAINING: (ACTIVE,),
}
_TO_TERMINATED: dict[str, tuple[str, ...]] = {DRAINING: (TERMINATED,), TERMINATED: ()}


async def register(log: EventLog, package: str, bindings: Sequence[Binding]) -> tuple[Binding, ...]:
    """The bindings of a package's manifest with their versions, active; its other ones are ended.

    A definition that the store knows (by package, trigger id and fingerprint) keeps its version,
    a new one gets the highest of that trigger id plus one. Registering the same again appends
    nothing, and everything is one transaction, so that two processes agree.
    """

    def work(tx: Transaction) -> tuple[Binding, ...]:
        stored = {
            (state.trigger_id, state.version): state
            for state in tx.bindings.states()
            if state.package == package
        }
        versioned = tuple(_versioned(tx, package, binding) for binding in bindings)
        kept = {(binding.trigger_id, binding.version) for binding in versioned}
        batch: list[Append] = []
        for key, state in sorted(stored.items()):
            if key not in kept:
                batch += _transitions(
                    _stored_description(state),
                    state.state,
                    _TO_TERMINATED.get(state.state, (DRAINING, TERMINATED)),
                    tx.now_ms,
                )
        for binding in versioned:
            known = stored.get((binding.trigger_id, binding.version))
            state_now = None if known is None else known.state
            batch += _transitions(
                _description(binding),
                state_now,
                _TO_ACTIVE.get(state_now, (REGISTERING, ACTIVE)),
                tx.now_ms,
                definition=binding.model_dump(mode="json"),
            )
        if batch:
            tx.append(batch)
        return versioned

    return await log.transact(work)


def _versioned(tx: Transaction, package: str, binding: Binding) -> Binding:
    version = tx.bindings.version(package, binding.trigger_id, binding.fingerprint)
    if version is None:
        version = tx.bindings.highest(binding.trigger_id) + 1
    return binding.model_copy(update={"package": package, "version": version})


def _description(binding: Binding) -> dict[str, Any]:
    return {
        "id": binding.trigger_id,
        "binding_key": binding.binding_key,
        "version": binding.version,
        "provider": binding.provider,
        "kind": binding.kind,
        "source": "manifest",
        "handler_kind": binding.handler.kind,
        "definition_fingerprint": binding.fingerprint,
        "package": binding.package,
    }


def _stored_description(stored: StoredBinding) -> dict[str, Any]:
    return {
        "id": stored.trigger_id,
        "binding_key": stored.binding_key,
        "version": stored.version,
        "provider": stored.provider,
        "kind": stored.kind,
        "source": "manifest",
        "handler_kind": stored.handler_kind,
        "definition_fingerprint": stored.fingerprint,
        "package": stored.package,
    }


def _transitions(
    description: dict[str, Any],
    from_state: str | None,
    path: Sequence[str],
    now_ms: int,
    *,
    definition: dict[str, Any] | None = None,
) -> list[Append]:
    """A record for each step of `path`; the one to `registering` carries the definition."""
    batch = []
    for to_state in path:
        payload = {**description, "from_state": from_state, "to_state": to_state}
        if to_state == REGISTERING and definition is not None:
            payload["definition"] = definition
        batch.append(
            Append(
                topic=topics.TRIGGERS_LIFECYCLE,
                kind="state_transition",
                payload=payload,
                occurred_at_ms=now_ms,
            )
        )
        from_state = to_state
    return batch
