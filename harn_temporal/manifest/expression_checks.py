"""Expressions of a manifest, compiled at load time so that a mistake shows before an event does."""

from __future__ import annotations

from harn_temporal.errors import ExpressionError
from harn_temporal.expressions import CelExpression, JmesExpression, compile_cel, compile_jmespath
from harn_temporal.manifest.table import Table
from harn_temporal.redaction import is_redacted


def cel_key(table: Table, key: str = "key") -> str | None:
    source = table.text(key, "a CEL expression")
    return source if source is not None and check_cel(table, key, source) else None


def jmespath_field(table: Table, key: str) -> str | None:
    source = table.text(key, "a JMESPath expression")
    if source is None:
        return None
    try:
        compiled = compile_jmespath(source)
    except ExpressionError as error:
        table.problem(key, str(error))
        return None
    return source if _check_headers(table, key, compiled) else None


def check_cel(table: Table, key: str, source: str) -> bool:
    try:
        compiled = compile_cel(source)
    except ExpressionError as error:
        table.problem(key, str(error))
        return False
    return _check_headers(table, key, compiled)


def _check_headers(table: Table, key: str, compiled: CelExpression | JmesExpression) -> bool:
    """Refuse headers whose value is blanked: all events would share one key, and count as one."""
    blanked = sorted(name for name in compiled.headers if is_redacted(name))
    for name in blanked:
        table.problem(
            key,
            f'`{compiled.source}` reads the header "{name}", whose value is redacted in every '
            "event, so all events would look alike; use another header or a field of the payload",
        )
    return not blanked
