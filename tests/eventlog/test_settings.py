from __future__ import annotations

from pathlib import Path

import pytest

from harn_temporal.errors import UsageError
from harn_temporal.eventlog import StoreSettings

STATE = Path("state")


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, StoreSettings("sqlite", STATE / "events.sqlite")),
        ({"HARN_EVENT_LOG_BACKEND": ""}, StoreSettings("sqlite", STATE / "events.sqlite")),
        ({"HARN_EVENT_LOG_SQLITE_PATH": "/x/y.db"}, StoreSettings("sqlite", Path("/x/y.db"))),
        ({"HARN_EVENT_LOG_BACKEND": "file"}, StoreSettings("file", STATE / "events")),
        (
            {"HARN_EVENT_LOG_BACKEND": "file", "HARN_EVENT_LOG_DIR": "/x"},
            StoreSettings("file", Path("/x")),
        ),
        ({"HARN_EVENT_LOG_BACKEND": "memory"}, StoreSettings("memory")),
    ],
)
def test_the_environment_names_the_store(environ, expected):
    assert StoreSettings.from_environment(STATE, environ) == expected


def test_a_backend_that_does_not_exist_is_refused():
    with pytest.raises(UsageError, match="'redis'; use one of: sqlite, file, memory"):
        StoreSettings.from_environment(STATE, {"HARN_EVENT_LOG_BACKEND": "redis"})
