"""What a trigger says besides its identity, and what a source may say in its stead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from harn_temporal.bindings import HandlerTarget, When
from harn_temporal.durations import ALL_UNITS
from harn_temporal.gates.models import Gate
from harn_temporal.manifest.agent_tables import AgentTable, read_agent_table, read_bearer_env
from harn_temporal.manifest.expression_checks import check_cel, jmespath_field
from harn_temporal.manifest.gates import gates_named, read_gates
from harn_temporal.manifest.handler_uri import check_function, read_handler, reads_as_function
from harn_temporal.manifest.keys import UNUSED_TRIGGER_KEYS
from harn_temporal.manifest.problems import Notes
from harn_temporal.manifest.retry_table import read_retry
from harn_temporal.manifest.table import Table
from harn_temporal.retry import RetryPolicy

PRIORITIES = ("high", "normal", "low")
_PRIORITY = '"high", "normal", "low", or a table { key, order }'


@dataclass(frozen=True, kw_only=True)
class Settings:
    """None stands for what is not given, or not given well."""

    handler: HandlerTarget | None = None
    when: When | None = None
    filter: str | None = None
    dedupe_key: str | None = None
    retry: RetryPolicy | None = None
    priority: str | None = None
    timeout_ms: int | None = None
    allow_cleartext: bool | None = None
    agent: AgentTable | None = None
    bearer_env: str | None = None
    gates: Mapping[str, Gate] = field(default_factory=dict)
    gates_named: frozenset[str] = frozenset()
    """Also those that are not given well."""
    kept: Mapping[str, Any] = field(default_factory=dict)

    def overridden_by(self, other: Settings) -> Settings:
        """These settings with those that `other` gives; gates and kept keys one by one."""
        given = {
            each.name: value
            for each in fields(other)
            if (value := getattr(other, each.name)) is not None
        }
        kept = {**self.kept, **other.kept}
        secrets = [each.kept.get("secrets") for each in (self, other)]
        if all(isinstance(each, dict) for each in secrets):
            kept["secrets"] = {**self.kept["secrets"], **other.kept["secrets"]}
        gates = {
            "gates": {**self.gates, **other.gates},
            "gates_named": self.gates_named | other.gates_named,
        }
        return replace(self, **{**given, **gates, "kept": kept})


def read_settings(
    table: Table, exports: Mapping[str, str], notes: Notes, trigger_id: str
) -> Settings:
    kept = {key: table.value(key) for key in sorted(UNUSED_TRIGGER_KEYS & table.values.keys())}
    notes.keep((key for key in kept if key != "budget"), trigger_id)
    if "secrets" in kept and not isinstance(kept["secrets"], dict):
        table.wrong("secrets", "a table")
    retry, agent, auth = table.table("retry"), table.table("a2a"), table.table("auth")
    return Settings(
        handler=read_handler(table, exports),
        when=_read_when(table, exports),
        filter=jmespath_field(table, "filter"),
        dedupe_key=jmespath_field(table, "dedupe_key"),
        retry=None if retry is None else read_retry(retry),
        priority=_read_priority(table),
        timeout_ms=table.duration_ms("timeout", ALL_UNITS),
        allow_cleartext=table.flag("allow_cleartext"),
        agent=None if agent is None else read_agent_table(agent),
        bearer_env=None if auth is None else read_bearer_env(auth),
        gates=read_gates(table, notes, trigger_id),
        gates_named=gates_named(table),
        kept=kept,
    )


def _read_when(table: Table, exports: Mapping[str, str]) -> When | None:
    source = table.text("when", 'a CEL expression, "function" or "module::function"')
    if source is None:
        return None
    if reads_as_function(source):
        valid = check_function(table, "when", source, exports)
        return When(kind="function", source=source) if valid else None
    return When(kind="cel", source=source) if check_cel(table, "when", source) else None


def _read_priority(table: Table) -> str | None:
    """The queue priority; a table is a gate, which is read with the other gates."""
    value = table.value("priority")
    if value is None or isinstance(value, dict):
        return None
    if value in PRIORITIES:
        return str(value)
    table.wrong("priority", _PRIORITY)
    return None
