"""Ends dispatches that are to be cancelled and wait for the pump: they never need a workflow."""

from __future__ import annotations

from harn_temporal.activities.attempt_log import CANCELLED
from harn_temporal.activities.envelopes import Envelopes
from harn_temporal.contracts import DispatchRequest
from harn_temporal.dispatch_records import cancelled, end_key
from harn_temporal.dispatch_records.common import trigger_graph_record
from harn_temporal.errors import StoreError
from harn_temporal.event_address import event_in
from harn_temporal.eventlog.dispatches import StoredDispatch
from harn_temporal.eventlog.log import Append, EventLog, Reader, Transaction
from harn_temporal.naming import dispatch_workflow_id


class Unadmitted:
    """Envelopes of a package behind a pump that may be full for as long as it likes."""

    def __init__(self, log: EventLog, envelopes: Envelopes) -> None:
        self._log = log
        self._envelopes = envelopes

    async def cancel(self, workflow_id: str, binding_key: str) -> bool:
        """Append the end of a dispatch; False where it is not known to wait, or not as this one.

        The pump takes it for ended when it comes to the envelope. One that it admits meanwhile
        is left to whoever cancels workflows: the log decides which of the two was first.
        """

        def find(reader: Reader) -> DispatchRequest | None:
            return self._request(reader, workflow_id, binding_key)

        request = await self._log.query(find)
        if request is None:
            return False

        def work(tx: Transaction) -> bool:
            if not _waits(tx.dispatches.get(workflow_id)):
                return False
            return tx.append(_end(request, workflow_id, tx.now_ms), end_key(workflow_id, 1)).fresh

        return await self._log.transact(work)

    def _request(
        self, reader: Reader, workflow_id: str, binding_key: str
    ) -> DispatchRequest | None:
        """None also where the envelope makes no sense: the pump tells of that."""
        stored = reader.dispatches.get(workflow_id)
        if stored is None or not _waits(stored):
            return None
        after = stored.envelope_id - 1
        for record in reader.read(stored.envelope_topic, after=after, limit=1):
            if record.event_id != stored.envelope_id or not self._envelopes.concerns(record):
                return None
            try:
                requests = self._envelopes.requests(record, reader.bindings.definition)
                for each in requests:
                    if _workflow_id(each) == workflow_id:
                        wanted = each.binding.binding_key == binding_key
                        event = {"event": event_in(record)}
                        return each.model_copy(update=event) if wanted else None
            except StoreError:
                return None
        return None


def _waits(stored: StoredDispatch | None) -> bool:
    return (
        stored is not None
        and stored.envelope_id > 0
        and not (stored.admitted_at_ms or stored.started_attempt or stored.ended_attempt)
        and not stored.outcome
    )


def _end(request: DispatchRequest, workflow_id: str, now_ms: int) -> list[Append]:
    batch = cancelled(request, 0, error=CANCELLED, workflow_id=workflow_id, now_ms=now_ms)
    if request.binding.when is not None:  # the predicate, which is not asked, would have told it
        batch.insert(0, trigger_graph_record(request, now_ms=now_ms))
    return batch


def _workflow_id(request: DispatchRequest) -> str:
    binding = request.binding
    return dispatch_workflow_id(
        binding.package, binding.trigger_id, request.event_id, request.replay
    )
