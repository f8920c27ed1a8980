"""`retry = { max, backoff, retention_days, … }`."""

from __future__ import annotations

from harn_temporal.manifest.table import Table
from harn_temporal.retry import (
    DEFAULT_MAX_ATTEMPTS,
    MAX_ATTEMPTS_LIMIT,
    Exponential,
    Immediate,
    Linear,
    RetryPolicy,
    Svix,
)

BACKOFFS = ("immediate", "svix", "linear", "exponential")
_FIELDS = {"linear": ("delay_ms",), "exponential": ("base_ms", "cap_ms")}
_DEFAULT_BACKOFF = "immediate"  # as in Harn, where a retry table without `backoff` means this
_MILLISECONDS = "an integer of milliseconds, at least 0"
_LONGEST_DELAY_MS = 366 * 24 * 3_600_000


def read_retry(table: Table) -> RetryPolicy | None:
    """The policy, or None where the table has a problem."""
    attempts = table.integer(
        "max",
        f"an integer from 0 to {MAX_ATTEMPTS_LIMIT} (0 means {DEFAULT_MAX_ATTEMPTS})",
        low=0,
        high=MAX_ATTEMPTS_LIMIT,
    )
    days = table.integer("retention_days", "an integer from 1 to 36500 (days)", low=1, high=36_500)
    delays = {key: _delay(table, key) for keys in _FIELDS.values() for key in keys}
    backoff = table.choice("backoff", BACKOFFS)
    table.close()
    if table.has("backoff") and backoff is None:
        return None
    kind = backoff or _DEFAULT_BACKOFF
    wanted = _FIELDS.get(kind, ())
    for owner, keys in _FIELDS.items():
        for key in keys:
            if table.has(key) and key not in wanted:
                table.problem(key, f'belongs to backoff = "{owner}"; this backoff is "{kind}"')
    for key in wanted:
        if not table.has(key):
            table.wrong(key, f'{_MILLISECONDS}; backoff = "{kind}" needs it')
    base, cap = delays["base_ms"], delays["cap_ms"]
    if kind == "exponential" and base is not None and cap is not None and cap < base:
        table.wrong("cap_ms", f"at least base_ms, which is {base}")
    return RetryPolicy(
        schedule=_schedule(kind, delays),
        max_attempts=attempts or DEFAULT_MAX_ATTEMPTS,
        retention_days=7 if days is None else days,
    )


def _delay(table: Table, key: str) -> int | None:
    allowed = f"an integer of milliseconds from 0 to {_LONGEST_DELAY_MS} (a year)"
    return table.integer(key, allowed, low=0, high=_LONGEST_DELAY_MS)


def _schedule(kind: str, delays: dict[str, int | None]) -> Immediate | Svix | Linear | Exponential:
    """The schedule; a delay with a problem is 0, in a policy that is then never used."""
    if kind == "linear":
        return Linear(interval_ms=delays["delay_ms"] or 0)
    if kind == "exponential":
        return Exponential(base_ms=delays["base_ms"] or 0, cap_ms=delays["cap_ms"] or 0)
    return Svix() if kind == "svix" else Immediate()
