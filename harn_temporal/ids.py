"""Identifiers: a prefix and a UUIDv7 (RFC 9562), so that they sort by the time they were made."""

from __future__ import annotations

import secrets
import uuid

from harn_temporal.clock import Clock, system_clock


def uuid7(clock: Clock = system_clock) -> uuid.UUID:
    ms = clock() & ((1 << 48) - 1)
    rand_a = secrets.randbits(12)
    rand_b = secrets.randbits(62)
    return uuid.UUID(int=ms << 80 | 7 << 76 | rand_a << 64 | 0b10 << 62 | rand_b)


def event_id(clock: Clock = system_clock) -> str:
    return f"trigger_evt_{uuid7(clock)}"


def trace_id(clock: Clock = system_clock) -> str:
    return f"trace_{uuid7(clock)}"


def audit_id(clock: Clock = system_clock) -> str:
    return f"trigger_audit_{uuid7(clock)}"


def dlq_id(clock: Clock = system_clock) -> str:
    return f"dlq_{uuid7(clock)}"
