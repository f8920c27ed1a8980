from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent

import pytest

from harn_temporal.context import HandlerContext
from harn_temporal.events import TriggerEvent, new_event
from harn_temporal.handlers import HandlerLoader


@pytest.fixture
def event() -> TriggerEvent:
    return new_event(provider="webhook", kind="ping", payload={"n": 1})


@pytest.fixture
def context() -> HandlerContext:
    return HandlerContext(
        event_id="trigger_evt_1",
        trace_id="trace_1",
        trigger_id="t",
        binding_key="t@v1",
        attempt=2,
        max_attempts=7,
        deadline_ms=1_000,
    )


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1, thread_name_prefix="handler") as pool:
        yield pool


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., HandlerLoader]:
    """Writes files below a folder and gives the loader for it."""

    def make(
        files: Mapping[str, str], exports: Mapping[str, str] | None = None, name: str = "triage"
    ) -> HandlerLoader:
        root = tmp_path / name
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(dedent(text), encoding="utf-8")
        root.mkdir(exist_ok=True)
        return HandlerLoader(root, exports or {})

    return make
