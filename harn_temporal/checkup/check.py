"""The answer of one check."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

State = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Check:
    """`found` says how it is, `advice` what to do where it is not as it should be."""

    name: str
    state: State
    found: str
    advice: str | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def ok(name: str, found: str) -> Check:
    return Check(name, "ok", found)


def warning(name: str, found: str, advice: str) -> Check:
    return Check(name, "warning", found, advice)


def error(name: str, found: str, advice: str) -> Check:
    return Check(name, "error", found, advice)
