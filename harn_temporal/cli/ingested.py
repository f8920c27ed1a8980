"""How `fire` and `ingest` show what became of an event for one binding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harn_temporal.cli.output import line, warn

if TYPE_CHECKING:
    from harn_temporal.ingestion import Ingested
    from harn_temporal.manifest import Manifest


def to_json(ingested: Ingested) -> dict[str, Any]:
    """`trigger_id, binding_key, event_id, workflow_id, status, warning`, and where it lies.

    `status` is `accepted`, `duplicate` or `filtered`; `envelope` is `{topic, event_id}`, null
    unless accepted.
    """
    return {
        "trigger_id": ingested.trigger_id,
        "binding_key": ingested.binding_key,
        "event_id": ingested.event_id,
        "workflow_id": ingested.workflow_id,
        "status": ingested.status,
        "envelope": None if ingested.address is None else ingested.address.model_dump(),
        "warning": ingested.warning,
    }


def show(ingested: Ingested) -> None:
    what = {
        "accepted": f"accepted, event {ingested.event_id}",
        "duplicate": "duplicate: its dedupe key was seen before, so nothing was appended",
        "filtered": "filtered: the trigger's filter says no, so nothing was appended",
    }
    line(f"{ingested.binding_key} {what[ingested.status]}")


def warn_of_absence(manifest: Manifest) -> None:
    warn(
        f"no worker of package {manifest.package} was seen in the last minute. The event is kept, "
        "and dispatched once one runs: `harn-temporal up`"
    )
