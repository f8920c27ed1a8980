"""The fingerprint of a definition: equal exactly where two definitions mean the same."""

from __future__ import annotations

import hashlib

from harn_temporal.bindings import Binding
from harn_temporal.canonical import encode

_NOT_DEFINITION = {"package", "version", "fingerprint"}


def fingerprinted(binding: Binding) -> Binding:
    """`binding` with the fingerprint of what it says.

    Fields at their default are left out, so that a field which a later release adds does not give
    every binding a new version. The kinds matched are a set: their order is no difference.
    """
    definition = binding.model_dump(mode="json", exclude=_NOT_DEFINITION)
    for name, field in Binding.model_fields.items():
        if name in definition and getattr(binding, name) == field.default:
            del definition[name]
    if binding.gates is not None:
        definition["gates"] = binding.gates.model_dump(mode="json", exclude_defaults=True)
    if "events" in definition:
        definition["events"] = sorted(set(definition["events"]))
    digest = hashlib.sha256(encode(definition)).hexdigest()
    return binding.model_copy(update={"fingerprint": digest})
