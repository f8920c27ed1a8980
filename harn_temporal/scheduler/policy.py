"""How a queue is shared, from the environment. A scheduler never refuses to start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Strategy = Literal["fifo", "drr"]
Dimension = Literal["tenant", "binding", "trigger-id", "tenant-and-binding"]

DEFAULT_STARVATION_AGE_MS = 300_000
NO_TENANT = "_no_tenant"
"""The fairness key of an event without a tenant id."""

_PREFIX = "HARN_SCHEDULER_"
_LARGEST = 2**53
"""Above this, numbers cannot be told apart by all who read the JSON of `queue ls`."""

_STRATEGIES: dict[str, Strategy] = {
    "fifo": "fifo",
    "drr": "drr",
    "deficit-round-robin": "drr",
    "fair-share": "drr",
}


@dataclass(frozen=True, slots=True)
class Policy:
    """`quantum`, `weights` and `starvation_age_ms` (0: never) count with `drr` only."""

    strategy: Strategy = "fifo"
    fairness_key: Dimension = "tenant"
    quantum: int = 1
    starvation_age_ms: int = DEFAULT_STARVATION_AGE_MS
    max_concurrent_per_key: int = 0
    """Claims in flight of one key; 0 is no limit."""
    default_weight: int = 1
    weights: Mapping[str, int] = field(default_factory=dict)

    def weight(self, key: str) -> int:
        return self.weights.get(key, self.default_weight)

    def grant(self, key: str) -> int:
        """The credits of one round, which is also the most that a key can have."""
        return self.weight(key) * self.quantum

    def key_of(self, tenant_id: str | None, trigger_id: str, binding_key: str) -> str:
        return fairness_keys(tenant_id, trigger_id, binding_key)[self.fairness_key]

    def to_json(self) -> dict[str, Any]:
        """As `queue ls --json` shows it."""
        strategy: dict[str, Any] = {"kind": "fifo"}
        if self.strategy == "drr":
            strategy = {
                "kind": "deficit-round-robin",
                "quantum": self.quantum,
                "starvation_age_ms": self.starvation_age_ms or None,
            }
        return {
            "strategy": strategy,
            "fairness_key": self.fairness_key,
            "weights": dict(self.weights),
            "default_weight": self.default_weight,
            "max_concurrent_per_key": self.max_concurrent_per_key,
        }


def fairness_keys(tenant_id: str | None, trigger_id: str, binding_key: str) -> dict[Dimension, str]:
    """The key of a job in each dimension."""
    tenant = NO_TENANT if tenant_id is None else tenant_id
    return {
        "tenant": tenant,
        "binding": binding_key,
        "trigger-id": trigger_id,
        "tenant-and-binding": f"{tenant}|{binding_key}",
    }


def read_policy(environ: Mapping[str, str]) -> tuple[Policy, tuple[str, ...]]:
    """The policy, and a warning for each variable that cannot be read and counts as unset."""
    reader = _Reader(environ)
    policy = Policy(
        strategy=reader.choice("STRATEGY", _STRATEGIES, "fifo"),
        fairness_key=reader.choice(
            "FAIRNESS_KEY", {name: name for name in get_args(Dimension)}, "tenant"
        ),
        quantum=reader.integer("QUANTUM", 1, low=1),
        starvation_age_ms=reader.integer("STARVATION_AGE_MS", DEFAULT_STARVATION_AGE_MS, low=0),
        max_concurrent_per_key=reader.integer("MAX_CONCURRENT_PER_KEY", 0, low=0),
        default_weight=reader.integer("DEFAULT_WEIGHT", 1, low=1),
        weights=reader.weights("WEIGHTS"),
    )
    return policy, tuple(reader.warnings)


class _Reader:
    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.warnings: list[str] = []

    def choice(self, name: str, known: Mapping[str, Any], default: str) -> Any:
        text = self._text(name)
        found = known.get(text.lower())
        if found is None:
            if text:
                self._warn(name, text, f"use one of {', '.join(known)}", default)
            return known[default]
        return found

    def integer(self, name: str, default: int, *, low: int) -> int:
        text = self._text(name)
        value = _integer(text, low)
        if value is None:
            if text:
                self._warn(name, text, f"use an integer of at least {low}", default)
            return default
        return value

    def weights(self, name: str) -> dict[str, int]:
        weights: dict[str, int] = {}
        for part in self._text(name).split(","):
            if not part.strip():
                continue
            key, _, text = part.rpartition(":")
            weight = _integer(text.strip(), 1)
            if not key.strip() or weight is None:
                self._warn(name, part.strip(), "use key:weight, a weight being 1 or more", "none")
                continue
            weights[key.strip()] = weight
        return weights

    def _text(self, name: str) -> str:
        return self._environ.get(_PREFIX + name, "").strip()

    def _warn(self, name: str, found: str, advice: str, default: object) -> None:
        self.warnings.append(f"{_PREFIX}{name}: {found!r} is ignored; {advice} (now: {default})")


def _integer(text: str, low: int) -> int | None:
    if not text.isascii() or not text.isdecimal() or len(text) > len(str(_LARGEST)):
        return None
    value = int(text)
    return value if low <= value <= _LARGEST else None
