"""Waiting until replays have ended, as the log tells it."""

from __future__ import annotations

from dataclasses import replace

from harn_temporal.eventlog.log import EventLog, Reader
from harn_temporal.operations.report import Report

WAIT_SECONDS = 60.0


async def with_outcomes(log: EventLog, report: Report) -> Report:
    """The report with how each replay ended, once a running worker has ended them all."""
    wanted = [item.workflow_id for item in report.items if item.workflow_id is not None]

    def look(reader: Reader) -> dict[str, str]:
        found = {workflow_id: reader.inbox.outcome(workflow_id) for workflow_id in wanted}
        return {each: outcome.status for each, outcome in found.items() if outcome is not None}

    mark = 0
    while True:
        # The mark is taken before the look, so that nothing appended meanwhile is missed.
        mark = await log.changed(mark, 0)
        ended = await log.query(look)
        if len(ended) == len(wanted):
            break
        mark = await log.changed(mark, WAIT_SECONDS)
    items = [replace(item, outcome=ended.get(item.workflow_id or "")) for item in report.items]
    return replace(report, items=items)
