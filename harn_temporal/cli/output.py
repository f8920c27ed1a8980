"""What commands print. Results go to stdout; notes, warnings and logs go to stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal, TextIO

_DESCRIPTORS: Final = {"stdout": 1, "stderr": 2}


def standard_stream(name: Literal["stdout", "stderr"]) -> TextIO:
    """The stream of that name, opened anew where a handler has closed it or taken it away.

    Closing it leaves its descriptor open, so nothing is lost.
    """
    stream: TextIO | None = getattr(sys, name)
    if stream is None or stream.closed:
        descriptor = _DESCRIPTORS[name]
        stream = open(  # noqa: SIM115 - open to the end of the process, as the one before it was
            descriptor, "w", encoding="utf-8", errors="backslashreplace", closefd=False
        )
        setattr(sys, name, stream)
    return stream


def print_json(value: Any) -> None:
    """The one JSON document of a command, on stdout: indented, in ASCII, whatever the locale."""
    standard_stream("stdout").write(json.dumps(value, indent=2) + "\n")


def print_json_line(value: Any) -> None:
    """One of several JSON documents, on a line of its own, seen at once by who reads along."""
    standard_stream("stdout").write(json.dumps(value) + "\n")
    standard_stream("stdout").flush()


def line(text: str) -> None:
    """A line of a result for people, seen at once by who reads along."""
    print(text, file=standard_stream("stdout"), flush=True)


def note(text: str) -> None:
    """A line beside the result: progress, or what happens next."""
    print(text, file=standard_stream("stderr"), flush=True)


def warn(text: str) -> None:
    note(f"warning: {text}")


@contextmanager
def stdout_for_results_only() -> Iterator[None]:
    """Inside, whatever handlers and their child processes print goes to stderr."""
    standard_stream("stdout").flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        standard_stream("stdout").flush()
        os.dup2(kept, 1)
        os.close(kept)
