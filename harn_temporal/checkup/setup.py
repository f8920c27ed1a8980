"""Python, the manifest, its handlers, and the state directory."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import sqlite3
import sys
from pathlib import Path

from harn_temporal.checkup.check import Check, error, ok, warning
from harn_temporal.errors import ManifestError
from harn_temporal.manifest import Manifest, load_manifest

OLDEST_PYTHON = (3, 11)
OLDEST_SQLITE = (3, 35, 0)


def check_python() -> Check:
    found = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    if sys.version_info < OLDEST_PYTHON:
        return error("python", found, "use Python 3.11 or later")
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        return error("python", found, "use a Python that is built with SQLite 3.35 or later")
    return ok("python", found)


def check_manifest(path: Path) -> tuple[Check, Manifest | None]:
    """The manifest without its handlers, and what is wrong with it."""
    if not path.exists():
        advice = "write one, or name yours with --config or HARN_ORCHESTRATOR_MANIFEST"
        return error("manifest", f"there is none at {path}", advice), None
    try:
        manifest = load_manifest(path, load_handlers=False)
    except ManifestError as problem:
        return error("manifest", str(problem), "correct what is named; docs/manifest.md"), None
    count = len(manifest.bindings)
    found = f"{path}: package {manifest.package}, {count} trigger{'s' if count != 1 else ''}"
    if manifest.warnings:
        said = "; ".join(manifest.warnings)
        return warning("manifest", f"{found}; {said}", "see docs/manifest.md"), manifest
    return ok("manifest", found), manifest


def check_handlers(path: Path) -> Check:
    """Whether every function that the manifest names is found and can be called.

    This imports the handlers' modules; what they print goes to stderr.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            manifest = load_manifest(path)
    except ManifestError as problem:
        return error("handlers", str(problem), "correct what is named; docs/handlers.md")
    names = {binding.handler.uri for binding in manifest.bindings}
    found = f"{len(names)} handler{'s' if len(names) != 1 else ''} found and callable"
    return ok("handlers", found)


ROOM_BYTES = 64 * 1024**2
"""Less is soon used up by what EventLog and embedded server write between two checkpoints."""


def check_state_dir(path: Path) -> Check:
    advice = "name another place with --state-dir or HARN_ORCHESTRATOR_STATE_DIR"
    if path.exists():
        if not path.is_dir():
            return error("state_dir", f"{path} is no directory", advice)
        if not os.access(path, os.W_OK | os.X_OK):
            return error("state_dir", f"{path} cannot be written to", advice)
        free = shutil.disk_usage(path).free
        if free < ROOM_BYTES:
            found = f"{path} is on a disk with {free // 1024} KiB left"
            return warning("state_dir", found, f"make room, or {advice}")
        return ok("state_dir", str(path))
    parent = next(each for each in path.absolute().parents if each.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        return error("state_dir", f"{path} is not there and cannot be made in {parent}", advice)
    return ok("state_dir", f"{path} is not there yet; the first command that writes makes it")
