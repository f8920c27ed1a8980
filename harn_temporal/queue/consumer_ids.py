"""Who claims, where nobody says so."""

from __future__ import annotations

import os
import socket

from harn_temporal.clock import Clock, system_clock


def default_consumer_id(clock: Clock = system_clock) -> str:
    """As Harn makes it: the host, the process, and the time."""
    host = os.environ.get("HOSTNAME", "").strip() or socket.gethostname() or "local"
    return f"{host}-pid{os.getpid()}-{clock()}"
