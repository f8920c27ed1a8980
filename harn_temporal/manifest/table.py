"""A table of the manifest, read key by key. What is wrong becomes a problem, and reads as None."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harn_temporal.durations import GATE_UNITS, parse_duration
from harn_temporal.errors import UsageError
from harn_temporal.manifest.problems import Place, Problems, listed, nearest, shown


class Table:
    """Each method names a key; `close` then reports the keys that no method named."""

    def __init__(self, values: Mapping[str, Any], place: Place, problems: Problems) -> None:
        self.values = values
        self.place = place
        self._problems = problems
        self._read: set[str] = set()

    def problem(self, key: str, sentence: str) -> None:
        self._problems.add(f"{self.place.field(key)}: {sentence}")

    def wrong(self, key: str, allowed: str) -> None:
        """Report the value of `key`, or its absence, with what is allowed there."""
        found = f"found {shown(self.values[key])}" if key in self.values else "missing"
        self.problem(key, f"{found}; allowed: {allowed}")

    def has(self, key: str) -> bool:
        return key in self.values

    def value(self, key: str) -> Any:
        self._read.add(key)
        return self.values.get(key)

    def text(self, key: str, allowed: str = "a text that is not empty") -> str | None:
        """A text without blanks around it."""
        value = self.value(key)
        if value is None:
            return None
        if isinstance(value, str) and value.strip():
            return value.strip()
        self.wrong(key, allowed)
        return None

    def required_text(self, key: str, allowed: str = "a text that is not empty") -> str | None:
        if not self.has(key):
            self.wrong(key, allowed)
        return self.text(key, allowed)

    def choice(self, key: str, allowed: Iterable[str]) -> str | None:
        options = tuple(allowed)
        value = self.value(key)
        if value is None:
            return None
        if isinstance(value, str) and value in options:
            return value
        self.wrong(key, listed(options))
        return None

    def texts(self, key: str, allowed: str = "an array of texts") -> tuple[str, ...] | None:
        value = self.value(key)
        if value is None:
            return None
        if isinstance(value, list) and all(isinstance(item, str) and item for item in value):
            return tuple(value)
        self.wrong(key, allowed)
        return None

    def integer(self, key: str, allowed: str, *, low: int, high: int | None = None) -> int | None:
        value = self.value(key)
        if value is None:
            return None
        whole = isinstance(value, int) and not isinstance(value, bool)
        if whole and low <= value and (high is None or value <= high):
            return int(value)
        self.wrong(key, allowed)
        return None

    def flag(self, key: str) -> bool | None:
        value = self.value(key)
        if value is None or isinstance(value, bool):
            return value
        self.wrong(key, "true or false")
        return None

    def duration_ms(self, key: str, units: tuple[str, ...] = GATE_UNITS) -> int | None:
        value = self.value(key)
        if value is None:
            return None
        if isinstance(value, str) and value.isalnum():
            try:
                ms = parse_duration(value, units=units)
            except UsageError:
                ms = 0  # reported below, as any duration that is not positive
            if ms > 0:
                return ms
        self.wrong(key, f'a positive duration such as "10m", the units being {", ".join(units)}')
        return None

    def required(self, key: str, value: Any, allowed: str) -> Any:
        """`value` as another method read it, with a problem where the key is missing."""
        if not self.has(key):
            self.wrong(key, allowed)
        return value

    def table(self, key: str) -> Table | None:
        value = self.value(key)
        if value is None:
            return None
        if isinstance(value, dict):
            return Table(value, self.place.table(key), self._problems)
        self.wrong(key, "a table")
        return None

    def array_of_tables(self, key: str) -> list[dict[str, Any]]:
        value = self.value(key)
        if value is None:
            return []
        if isinstance(value, list) and all(isinstance(item, dict) for item in value):
            return value
        self.wrong(key, "an array of tables")
        return []

    def close(self, ignored: Iterable[str] = ()) -> None:
        """Report each key that is neither read nor in `ignored`, with the known one nearest."""
        known = self._read | set(ignored)
        for key in self.values:
            if key not in known:
                self.problem(key, f"unknown key; the nearest known one is `{nearest(key, known)}`")
