"""A store that may only be read, such as a backup on a read-only mount."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harn_temporal.eventlog import open_event_log
from harn_temporal.eventlog.log import Append


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nothing in the folder can be written to, whoever asks; and nothing is."""
    for lock in [*folder.rglob("*lock"), *folder.rglob("*.sqlite-*")]:
        lock.unlink()  # a copy has none, and they must not be made
    before = _content(folder)
    can_access = os.access

    def denied(path: Any, mode: int, **options: Any) -> bool:
        below = Path(path).resolve().is_relative_to(folder.resolve())
        return not (mode & os.W_OK and below) and can_access(path, mode, **options)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "access", denied)
        yield
    assert _content(folder) == before


def _content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _timeless(shown: str) -> str:
    """Without digits: ages grow from one look to the next."""
    return re.sub(r"\d+", "0", shown)


@pytest.mark.parametrize(
    "arguments",
    [
        ("log", "topics"),
        ("log", "read", "triggers.lifecycle"),
        ("log", "verify"),
        ("dlq", "ls"),
        ("trigger", "ls"),
        ("inspect",),
        ("queue", "ls"),
    ],
)
def test_what_only_reads_does_so_and_writes_nothing(
    program: Any, filled: Any, arguments: tuple[str, ...]
) -> None:
    expected = program(*arguments, "--json")
    with read_only(program.state_dir):
        ran = program(*arguments, "--json")
    assert (ran.code, ran.err) == (0, "")
    assert _timeless(ran.out) == _timeless(expected.out)


def test_what_writes_says_what_to_do(program: Any, filled: Any) -> None:
    with read_only(program.state_dir):
        ran = program("log", "rebuild")
    assert ran.code == 3
    assert "is read-only" in ran.err
    assert "copy it to a directory that you may write to" in ran.err


def test_a_writer_elsewhere_is_read_along(program: Any) -> None:
    """One who may write has the store open: what lies in SQLite's log counts as well."""

    async def read(log: Any) -> Any:
        await log.append([Append("shop.orders", "order", {"n": 1})])
        assert any(program.state_dir.rglob("*.sqlite-wal"))
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(os, "access", lambda *_args, **_options: False)
            reader = await open_event_log(program.settings())
        try:
            return [(record.kind, record.payload) for record in await reader.read("shop.orders")]
        finally:
            await reader.close()

    assert program.fill(read) == [("order", {"n": 1})]
