"""Opening the EventLog that the settings name."""

from __future__ import annotations

from harn_temporal.clock import Clock, system_clock
from harn_temporal.eventlog.file_backend import FileBackend
from harn_temporal.eventlog.log import EventLog
from harn_temporal.eventlog.session import Backend
from harn_temporal.eventlog.settings import StoreSettings
from harn_temporal.eventlog.sqlite import MemoryBackend, SqliteBackend
from harn_temporal.eventlog.store import Store


async def open_event_log(settings: StoreSettings, clock: Clock = system_clock) -> EventLog:
    """Open the store, or make it. Close it after use.

    Raises StoreUnavailableError where it cannot be reached, StoreError where it cannot be used.
    """
    store = Store(_backend(settings), clock)
    try:
        await store.start()
    except BaseException:
        await store.close()
        raise
    return store


def _backend(settings: StoreSettings) -> Backend:
    if settings.path is None:
        return MemoryBackend()
    return FileBackend(settings.path) if settings.kind == "file" else SqliteBackend(settings.path)
