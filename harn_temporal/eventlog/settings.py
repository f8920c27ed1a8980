"""Which store to open, from the environment: Harn's variables, and one of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, get_args

from harn_temporal.errors import UsageError

StoreKind = Literal["sqlite", "file", "memory"]

_BACKEND = "HARN_EVENT_LOG_BACKEND"
_SQLITE_PATH = "HARN_EVENT_LOG_SQLITE_PATH"
_DIRECTORY = "HARN_EVENT_LOG_DIR"


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """`path` is the SQLite file, or the directory of the file backend; memory has none."""

    kind: StoreKind
    path: Path | None = None

    @classmethod
    def from_environment(cls, state_dir: Path, environ: Mapping[str, str]) -> Self:
        """Raises UsageError for a backend that does not exist. Empty variables count as unset."""
        kind = environ.get(_BACKEND) or "sqlite"
        if kind == "sqlite":
            return cls("sqlite", Path(environ.get(_SQLITE_PATH) or state_dir / "events.sqlite"))
        if kind == "file":
            return cls("file", Path(environ.get(_DIRECTORY) or state_dir / "events"))
        if kind == "memory":
            return cls("memory")
        known = ", ".join(get_args(StoreKind))
        raise UsageError(f"{_BACKEND} is {kind!r}; use one of: {known}")
