"""The sweep of jobs: a dispatch that its consumer left, and will not end, gets its end in the log.

Each claim of a job is a dispatch of its own. Where its consumer is killed, the job is run again
under the next claim, and nobody says any more what became of the first.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from pydantic import ValidationError

from harn_temporal.activities.sweep import SIDE_BY_SIDE, Describe, Release, end_records
from harn_temporal.bindings import Binding
from harn_temporal.contracts import DispatchRequest, EventAddress
from harn_temporal.dispatch_records import end_key
from harn_temporal.errors import StoreError
from harn_temporal.event_address import event_in
from harn_temporal.eventlog.dispatches import StoredDispatch
from harn_temporal.eventlog.log import EventLog, Reader, Record, Transaction
from harn_temporal.eventlog.topics import WORKER_PREFIX
from harn_temporal.headers import EVENT_ADDRESS
from harn_temporal.queue.settling import LOST

logger = logging.getLogger("harn_temporal.sweep")

PAGE = 200
LEFT_MS = 60_000
"""Nothing is said of an attempt that began since: its consumer may still be about to end it."""


class JobSweep:
    """Looks at each dispatch of a job that began and has no outcome, of all queues of a store.

    It is ended where another consumer holds the job or the job has ended, and Temporal has no open
    workflow of it. One that an overtaken consumer runs in its own history is none that Temporal
    knows: it ends so too, and what its handler gives would be refused as well.
    """

    def __init__(self, log: EventLog, describe: Describe, release: Release) -> None:
        self._log = log
        self._describe = describe
        self._release = release

    async def once(self) -> None:
        after = ""
        while page := await self._log.query(partial(_page, after=after)):
            left = [each for each, overtaken in page if overtaken]
            for start in range(0, len(left), SIDE_BY_SIDE):
                some = left[start : start + SIDE_BY_SIDE]
                await asyncio.gather(*(self._look_at(each) for each in some))
            after = page[-1][0].workflow_id

    async def _look_at(self, dispatch: StoredDispatch) -> None:
        life = await self._describe(dispatch.workflow_id)
        if life == "open":
            return

        def end(tx: Transaction) -> bool:
            now = tx.dispatches.get(dispatch.workflow_id)
            if now is None or now.outcome or not _overtaken(tx, now):
                return False
            try:
                request = self._request(tx, now)
            except (StoreError, ValidationError) as error:
                logger.error(  # noqa: TRY400 - what the log holds is at fault, not the code
                    "sweep_skips", extra={"workflow_id": now.workflow_id, "error": str(error)}
                )
                return False
            batch, attempt = end_records(tx, now, request, LOST)
            if not tx.append(batch, key=end_key(now.workflow_id, attempt)).fresh:
                return False  # its worker ended the attempt after all
            self._release(tx, now.workflow_id)
            return True

        if await self._log.transact(end):
            logger.warning(
                "dispatch_swept", extra={"workflow_id": dispatch.workflow_id, "life": life}
            )

    def _request(self, reader: Reader, dispatch: StoredDispatch) -> DispatchRequest:
        """The request as it was begun. Raises StoreError where the log does not tell."""
        begun = _begun(reader, dispatch)
        place = None if begun is None else _place(begun)
        job = None if place is None else _record(reader, place)
        if begun is None or place is None or job is None:
            raise StoreError(f"the job of {dispatch.workflow_id} is not in the log")
        trigger_id, _, version = begun.headers.get("binding_key", "").rpartition("@v")
        if not (version.isascii() and version.isdecimal()):
            raise StoreError(f"{dispatch.workflow_id} began for no version of a trigger")
        definition = reader.bindings.definition(trigger_id, int(version))
        if definition is None:
            raise StoreError(f"{trigger_id}@v{version} of {dispatch.workflow_id} is not in the log")
        event = event_in(job)
        return DispatchRequest(
            store_id=self._log.store_id,
            binding=Binding.model_validate({**definition, "version": int(version)}),
            event_id=event.id,
            trace_id=event.trace_id,
            tenant_id=event.tenant_id,
            address=place,
            event=event,
            replay_of_event_id=job.payload.get("replay_of_event_id"),
        )


def _page(reader: Reader, after: str) -> list[tuple[StoredDispatch, bool]]:
    """Dispatches of jobs, and whether each was overtaken."""
    found = reader.dispatches.jobs_under_way(after=after, limit=PAGE)
    return [(each, _overtaken(reader, each)) for each in found]


def _overtaken(reader: Reader, dispatch: StoredDispatch) -> bool:
    """Whether it began a while ago, and its claim is no more the one that holds the job."""
    begun = _begun(reader, dispatch)
    place = None if begun is None else _place(begun)
    if begun is None or place is None or begun.occurred_at_ms > reader.now_ms - LEFT_MS:
        return False
    jobs = reader.queues.jobs(place.topic.removeprefix(WORKER_PREFIX))
    job = None if jobs is None else jobs.find(place.event_id)
    claim_id = dispatch.workflow_id.rpartition("/")[2]
    return job is not None and not job.claimed_by(claim_id)


def _begun(reader: Reader, dispatch: StoredDispatch) -> Record | None:
    """The record of the attempt that was begun last."""
    place = EventAddress(topic=dispatch.begun_topic, event_id=dispatch.begun_id)
    return _record(reader, place) if dispatch.begun_id else None


def _record(reader: Reader, place: EventAddress) -> Record | None:
    found = reader.read(place.topic, after=place.event_id - 1, limit=1)
    return found[0] if found and found[0].event_id == place.event_id else None


def _place(begun: Record) -> EventAddress | None:
    """Where the job lies that an attempt was begun for."""
    place = EventAddress.read(begun.headers.get(EVENT_ADDRESS, ""))
    return place if place is not None and place.topic.startswith(WORKER_PREFIX) else None
