from harn_temporal.eventlog.open import open_event_log
from harn_temporal.eventlog.settings import StoreSettings

__all__ = ["StoreSettings", "open_event_log"]
