"""The keys of a binding's gates for one event."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from harn_temporal.bindings import Binding
from harn_temporal.canonical import clean
from harn_temporal.errors import NotJsonError
from harn_temporal.expressions import compile_cel
from harn_temporal.gates.identity import GateKey, key_text, limited
from harn_temporal.gates.models import Gates

if TYPE_CHECKING:
    from harn_temporal.expressions import CelExpression


def gate_keys(binding: Binding, event: Mapping[str, Any]) -> list[GateKey]:
    """For each gate of the binding, in their order, the one that an event (as JSON) goes through.

    A field that is missing makes a key null. Raises ExpressionError where a key fails otherwise.
    """
    found = []
    for kind, gate in (binding.gates or Gates()).in_order():
        source = gate.key
        found.append(
            GateKey(
                kind=kind,
                binding_key=binding.binding_key,
                keyed=source is not None,
                value=None if source is None else limited(_value(source, event)),
            )
        )
    return found


def waiting_rank(binding: Binding, event: Mapping[str, Any]) -> int:
    """The place of an event among waiters: 0 goes first. Raises ExpressionError."""
    priority = None if binding.gates is None else binding.gates.priority
    if priority is None:
        return 0
    text = key_text(_value(priority.key, event))
    return priority.order.index(text) if text in priority.order else len(priority.order)


@lru_cache(maxsize=256)
def _compiled(source: str) -> CelExpression:
    return compile_cel(source)


def _value(source: str, event: Mapping[str, Any]) -> JsonValue:
    value = _compiled(source).evaluate(event)
    try:
        return clean(value)
    except NotJsonError:  # a type of CEL that JSON does not have, such as a duration
        return str(value)
