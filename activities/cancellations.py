"""Acts on durable requests to cancel, which any program may append.

A dispatch whose envelope waits for the pump is ended in the log. One that was admitted and has no
workflow yet needs nothing here: the first transaction of its attempt finds the request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from harn_temporal.errors import StoreError, UnavailableError
from harn_temporal.eventlog.cancel_requests import CANCEL_REQUESTED
from harn_temporal.eventlog.fields import Malformed, mapping, text
from harn_temporal.eventlog.log import EventLog, Reader, Record
from harn_temporal.eventlog.topics import CANCEL_REQUESTS
from harn_temporal.naming import cancel_consumer, consumer_workflow_id, dispatch_workflow_id
from harn_temporal.queue.under_way import jobs_under_way

logger = logging.getLogger("harn_temporal.cancellations")

Cancel = Callable[[str, str], Awaitable[bool]]
"""Cancels the dispatch of a workflow id and binding key, if it can. Raises UnavailableError."""

CancelInline = Callable[[str, str], Awaitable[bool]]
"""Has the consumer of a workflow id cancel the job of a claim id. Raises UnavailableError."""

CHUNK = 50
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
WAIT_S = 10.0
"""A look at least so often: it is also how an idle worker learns that its store was upgraded."""


@dataclass(frozen=True, slots=True)
class _Request:
    binding_key: str
    event_id: str
    workflow_id: str
    consumer: str | None = None
    """The workflow id of the consumer that holds the job, where it is one, with its claim."""
    claim_id: str = ""


class Cancellations:
    """The requests that concern a package, from where its workers left off."""

    def __init__(
        self,
        log: EventLog,
        cancel_unadmitted: Cancel,
        cancel: Cancel,
        cancel_inline: CancelInline,
        *,
        package: str,
    ) -> None:
        self._log = log
        self._cancel_unadmitted = cancel_unadmitted
        self._cancel = cancel
        self._cancel_inline = cancel_inline
        self._package = package
        self._consumer_id = cancel_consumer(package)

    async def run(self) -> None:
        """Act until cancelled. Outages are waited out here; raises StoreUpgradedError.

        A request is acted on again rather than lost: cancelling twice does no harm.
        """
        mark, pause_s = 0, FIRST_PAUSE_S
        while True:
            try:
                mark = await self._log.changed(mark, 0)
                while await self._some():
                    pass
                mark = await self._log.changed(mark, WAIT_S)
                pause_s = FIRST_PAUSE_S
            except (UnavailableError, StoreError) as error:
                logger.warning(
                    "cancellations_wait", extra={"error": str(error), "pause_s": pause_s}
                )
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    async def _some(self) -> bool:
        """Act on the next requests; False where there were none."""
        records, wanted = await self._log.query(self._next)
        if not records:
            return False
        results = await asyncio.gather(
            *(self._act(each) for each in wanted), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result
        last = records[-1].event_id
        await self._log.transact(lambda tx: tx.ack(CANCEL_REQUESTS, self._consumer_id, last))
        return True

    async def _act(self, request: _Request) -> None:
        named = request.workflow_id, request.binding_key
        told = await self._cancel_unadmitted(*named) or await self._cancel(*named)
        if not told and request.consumer is not None:
            told = await self._cancel_inline(request.consumer, request.claim_id)
        if told:
            logger.info(
                "dispatch_cancelled",
                extra={"binding_key": request.binding_key, "event_id": request.event_id},
            )

    def _next(self, reader: Reader) -> tuple[list[Record], list[_Request]]:
        after = reader.cursor(CANCEL_REQUESTS, self._consumer_id)
        records = reader.read(CANCEL_REQUESTS, after, CHUNK)
        if not records:
            return [], []
        triggers = {
            state.binding_key: state.trigger_id
            for state in reader.bindings.states()
            if state.package == self._package
        }
        found = [each for record in records for each in self._requests(reader, record, triggers)]
        # The same dispatch, asked for twice, is cancelled once.
        return records, list(dict.fromkeys(found))

    def _requests(
        self, reader: Reader, record: Record, triggers: Mapping[str, str]
    ) -> list[_Request]:
        """Empty for what is no request, is another package's, or about what has ended."""
        if record.kind != CANCEL_REQUESTED:
            return []
        try:
            payload = mapping(record)
            binding_key, event_id = text(payload, "binding_key"), text(payload, "event_id")
        except Malformed:
            return []
        trigger_id = triggers.get(binding_key)
        if trigger_id is None:
            return []
        workflow_id = dispatch_workflow_id(self._package, trigger_id, event_id)
        found = [
            _Request(
                binding_key,
                event_id,
                job.workflow_id,
                consumer_workflow_id(self._log.store_id, self._package, job.queue, job.consumer_id),
                job.claim_id,
            )
            for job in jobs_under_way(reader, event_id)
            if job.trigger_id == trigger_id and job.binding_key in {"", binding_key}
        ]
        if reader.inbox.outcome(workflow_id) is None:
            found.append(_Request(binding_key, event_id, workflow_id))
        return found
