"""Durations: an integer with a unit where people write them, milliseconds everywhere else."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harn_temporal.errors import UsageError

_UNIT_MS = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
ALL_UNITS = tuple(_UNIT_MS)
GATE_UNITS = ("s", "m", "h", "d", "w")

LIMIT_MS = 36_500 * _UNIT_MS["d"]
"""A hundred years: more is a slip of the pen, and overflows timers."""

_DURATION = re.compile(r"([0-9]{1,15})\s?([a-z]+)")


def parse_duration(text: str, units: Sequence[str] = ALL_UNITS) -> int:
    """Milliseconds of a text such as `500ms`, `30s` or `10m`; UsageError says what is allowed."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or match[2] not in units:
        allowed = f"{', '.join(units[:-1])} or {units[-1]}" if len(units) > 1 else units[0]
        raise UsageError(f"{text!r} is not a duration; write an integer with {allowed}, like 10m")
    ms = int(match[1]) * _UNIT_MS[match[2]]
    if ms > LIMIT_MS:
        raise UsageError(f"{text!r} is more than a hundred years; write a shorter duration")
    return ms


def format_duration(ms: int) -> str:
    """A duration for people, in at most two units: `250 ms`, `1.5 s`, `5 m`, `2 h 30 m`."""
    if ms < 0:
        return f"-{format_duration(-ms)}"
    if 0 < ms < _UNIT_MS["s"]:
        return f"{ms} ms"
    if ms < _UNIT_MS["m"]:
        return f"{ms / 1000:.3f}".rstrip("0").rstrip(".") + " s"
    parts = []
    rest = ms
    for unit in ("d", "h", "m", "s"):
        count, rest = divmod(rest, _UNIT_MS[unit])
        parts.append((count, unit))
    while not parts[0][0]:
        del parts[0]
    return " ".join(f"{count} {unit}" for count, unit in parts[:2] if count)
