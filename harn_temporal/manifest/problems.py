"""The mistakes of a manifest, gathered so that its author sees all of them at once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

_SHOWN_LIMIT = 80
_INTEGER_BITS = 64
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class Problems:
    """An ordered list of sentences, each said once."""

    def __init__(self) -> None:
        self._sentences: dict[str, None] = {}

    def add(self, sentence: str) -> None:
        self._sentences[sentence] = None

    def __len__(self) -> int:
        return len(self._sentences)

    def all(self) -> tuple[str, ...]:
        return tuple(self._sentences)


@dataclass(frozen=True)
class Place:
    """Where in a manifest: the file, the entry (`[[triggers]] #2 "nightly"`), and a table in it."""

    file: str
    entry: str = ""
    tables: tuple[str, ...] = ()

    def field(self, name: str) -> str:
        """The place of a key, as `harn.toml, [[triggers]] #2 "nightly", retry.max`."""
        dotted = ".".join(as_key(each) for each in (*self.tables, name))
        return ", ".join(part for part in (self.file, self.entry, dotted) if part)

    def table(self, name: str) -> Place:
        return Place(self.file, self.entry, (*self.tables, name))


@dataclass
class Notes:
    """What a manifest's author should know although the manifest can be used."""

    warnings: list[str] = field(default_factory=list)
    unused: dict[str, list[str]] = field(default_factory=dict)
    """A key that nothing uses yet -> the ids of the triggers that have it ("" for the file)."""

    def keep(self, keys: Iterable[str], trigger_id: str) -> None:
        for key in keys:
            self.unused.setdefault(key, []).append(trigger_id)


def shown(value: Any) -> str:
    """What was found, as TOML would have it: short, and on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = value if len(value) <= _SHOWN_LIMIT else value[:_SHOWN_LIMIT] + "…"
        return json.dumps(text, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list):
        return "an array" if value else "an empty array"
    if isinstance(value, int) and value.bit_length() > _INTEGER_BITS:
        return f"an integer of {value.bit_length()} bits"
    return str(value)[:_SHOWN_LIMIT]


def as_key(name: str) -> str:
    """A key as TOML writes it: quoted unless it is bare."""
    return name if _BARE_KEY.fullmatch(name) else shown(name)


def listed(allowed: Iterable[str]) -> str:
    """`"a", "b" or "c"`."""
    quoted = [f'"{item}"' for item in allowed]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like `name`, however far; None where nothing is known."""
    matches = get_close_matches(name, sorted(known), n=1, cutoff=0.0)
    return matches[0] if matches else None
