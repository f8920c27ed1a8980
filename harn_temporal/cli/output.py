"""What commands print. Results go to stdout; notes, warnings and logs go to stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def print_json(value: Any) -> None:
    """The one JSON document of a command, on stdout: indented, in ASCII, whatever the locale."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def print_json_line(value: Any) -> None:
    """One of several JSON documents, on a line of its own, seen at once by who reads along."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def line(text: str) -> None:
    """A line of a result for people, seen at once by who reads along."""
    print(text, flush=True)  # noqa: T201 - a command line prints


def note(text: str) -> None:
    """A line beside the result: progress, or what happens next."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - a command line prints


def warn(text: str) -> None:
    note(f"warning: {text}")


@contextmanager
def stdout_for_results_only() -> Iterator[None]:
    """Inside, whatever handlers and their child processes print goes to stderr."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
