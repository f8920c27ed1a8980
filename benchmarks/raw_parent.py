"""What a drain is measured against: a parent that runs a child workflow for each event."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from raw_workflow import RawWorkflow


@dataclass
class RawParentInput:
    events: list[dict[str, Any]]
    concurrency: int


@workflow.defn
class RawParent:
    @workflow.run
    async def run(self, message: RawParentInput) -> None:
        slots = asyncio.Semaphore(message.concurrency)

        async def child(number: int, event: dict[str, Any]) -> None:
            async with slots:
                await workflow.execute_child_workflow(
                    RawWorkflow.run, event, id=f"{workflow.info().workflow_id}/{number}"
                )

        await asyncio.gather(*(child(*each) for each in enumerate(message.events)))
