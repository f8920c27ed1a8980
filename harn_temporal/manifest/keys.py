"""Keys that Harn knows and nothing here uses yet. They are kept, with one warning."""

from __future__ import annotations

UNUSED_TRIGGER_KEYS = frozenset(
    {
        "address",
        "autonomy_tier",
        "budget",
        "dlq-alerts",
        "dlq_alerts",
        "domain",
        "path",
        "routing",
        "schedule",
        "secrets",
        "slot",
        "subject",
        "subjects",
        "tier",
        "timezone",
        "topic",
        "topics",
        "url",
        "when_budget",
        "window",
    }
)

UNUSED_SECTIONS = frozenset(
    {
        "capabilities",
        "check",
        "connector-contract",
        "connector_contract",
        "dependencies",
        "hooks",
        "llm",
        "mcp",
        "personas",
        "providers",
        "registry",
        "skill",
        "skills",
        "workspace",
    }
)

UNUSED_ORCHESTRATOR_KEYS = frozenset(
    {"allowed-origins", "allowed_origins", "budget", "drain", "max-body-bytes", "max_body_bytes"}
)
