"""Which gate it is: a binding, a kind, and the value of the key.

The name is for people and for Harn. Two gates may share a name, and even more share a topic, so
what tells them apart is `gate_id`, a hash over all parts, which each of our records carries.
"""

from __future__ import annotations

import functools
import hashlib

from pydantic import BaseModel, ConfigDict, JsonValue

from harn_temporal.canonical import clean_text, encode
from harn_temporal.eventlog.topics import gate_topic
from harn_temporal.gates.models import GateKind

GLOBAL = "_global"
"""Stands for the key in the name of a gate that has none."""

KEY_LIMIT = 16 * 1024
"""Characters of a key; a longer one ends in a hash over the whole of it."""

_ID_LENGTH = 32


class GateKey(BaseModel):
    """One gate. `value` is what its key expression gave; None, and not `keyed`, without one."""

    model_config = ConfigDict(frozen=True)

    kind: GateKind
    binding_key: str
    keyed: bool = False
    value: JsonValue = None

    @functools.cached_property
    def name(self) -> str:
        """As in the `gate` of its records."""
        return f"{clean_text(self.binding_key)}:{key_text(self.value) if self.keyed else GLOBAL}"

    @functools.cached_property
    def gate_id(self) -> str:
        parts = encode([clean_text(self.binding_key), self.keyed, self.value])
        return hashlib.sha256(parts).hexdigest()[:_ID_LENGTH]

    @property
    def topic(self) -> str:
        return gate_topic(self.kind, self.name)


def key_text(value: JsonValue) -> str:
    """A text as it is, anything else as JSON: a field that is missing is `null`."""
    return clean_text(value) if isinstance(value, str) else encode(value).decode()


def limited(value: JsonValue) -> JsonValue:
    """`value`, or where it is too long to stand in every record, its beginning and a hash."""
    text = key_text(value)
    if len(text) <= KEY_LIMIT:
        return clean_text(value) if isinstance(value, str) else value
    whole = hashlib.sha256(encode(value)).hexdigest()
    return f"{text[: KEY_LIMIT - len(whole) - 1]}-{whole}"
