"""A manifest's text: found, decoded, and parsed as TOML."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from harn_temporal.errors import ManifestError


def read_toml(path: Path) -> dict[str, Any]:
    """The document at `path`. Raises ManifestError, with line and column where TOML is invalid."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError as error:
        raise ManifestError(
            str(path),
            [f"there is no such file (looked at {path.absolute()}); name another with --config"],
        ) from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ManifestError(
            str(path), [f"the file cannot be read: {reason}; name another with --config"]
        ) from error
    try:
        text = raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - (raw.rfind(b"\n", 0, error.start) + 1) + 1
        raise ManifestError(
            str(path),
            [f"not UTF-8: byte 0x{raw[error.start]:02x} at line {line}, byte {column} of the line"],
        ) from error
    try:
        return tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError, or an integer with too many digits
        raise ManifestError(str(path), [f"not valid TOML: {error}"]) from error
    except RecursionError as error:
        raise ManifestError(str(path), ["not valid TOML: nested too deeply"]) from error
