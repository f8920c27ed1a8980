"""What becomes of dispatches, a line each as it happens: retries, and how they end.

issues.opened -> github-new-issue@v1 succeeded, 1 attempt
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harn_temporal.cli.tables import printable
from harn_temporal.durations import format_duration
from harn_temporal.errors import StoreError, StoreUnavailableError
from harn_temporal.eventlog.log import EventLog, Reader, Record
from harn_temporal.eventlog.topics import TRIGGER_ATTEMPTS, TRIGGER_OUTBOX, is_of
from harn_temporal.headers import OUTCOME, WORKFLOW_ID

WAIT_SECONDS = 60.0
PAGE = 500
ERROR_LIMIT = 300
"""Characters of an error that go on a line; the whole of it lies in the log."""
MAY_NOT_HAVE_BEGUN = frozenset({"cancelled", "dlq"})
"""Ends that come before an attempt as well: in a wait, or where a circuit is open."""


class DispatchLines:
    """Shows the records of interest from when `start` was called.

    `wanted` says by its headers whether a record is of interest, `show` prints a line.
    """

    def __init__(
        self, log: EventLog, wanted: Callable[[Record], bool], show: Callable[[str], None]
    ) -> None:
        self._log = log
        self._wanted = wanted
        self._show = show
        self._seen: dict[str, int] = {}

    async def start(self) -> None:
        self._seen = await self._log.query(_heads)

    async def run(self) -> None:
        """Show lines until cancelled. An outage of the store only delays them."""
        mark = 0
        while True:
            try:
                # The mark is taken before the look, so that nothing appended meanwhile is missed.
                mark = await self._log.changed(mark, 0)
                await self.catch_up()
            except StoreUnavailableError:
                pass  # the worker reports outages; what was appended shows once it is over
            mark = await self._log.changed(mark, WAIT_SECONDS)

    async def catch_up(self) -> None:
        """Show what was appended since the last look."""
        for topic, head in (await self._log.query(_heads)).items():
            while self._seen.get(topic, 0) < head:
                page = await self._log.read(topic, self._seen.get(topic, 0), PAGE)
                if not page:
                    break
                self._seen[topic] = page[-1].event_id
                for record in filter(self._wanted, page):
                    text = _line(record, await self._begun(record))
                    if text is not None:
                        self._show(text)

    async def _begun(self, record: Record) -> int | None:
        """How many attempts began, where the record may name one that never will."""
        workflow_id = record.headers.get(WORKFLOW_ID)
        if workflow_id is None or record.headers.get(OUTCOME) not in MAY_NOT_HAVE_BEGUN:
            return None
        found = await self._log.query(lambda reader: reader.dispatches.get(workflow_id))
        return None if found is None else found.started_attempt


def outcome_text(status: str, attempts: int, error: str | None) -> str:
    """`failed, 3 attempts: …`; without attempts just the status."""
    text = status
    if attempts:
        text += f", {attempts} attempt{'s' if attempts != 1 else ''}"
    return f"{text}: {short(error)}" if error else text


def short(error: str) -> str:
    text = printable(error)
    return text if len(text) <= ERROR_LIMIT else text[: ERROR_LIMIT - 1] + "…"


def _heads(reader: Reader) -> dict[str, int]:
    return {
        head.topic: head.last_id
        for head in reader.topics()
        if is_of(head.topic, TRIGGER_OUTBOX) or is_of(head.topic, TRIGGER_ATTEMPTS)
    }


def _line(record: Record, begun: int | None) -> str | None:
    what = f"{record.headers.get('kind', '?')} -> {record.headers.get('binding_key', '?')}"
    if is_of(record.topic, TRIGGER_OUTBOX):
        status = record.headers.get(OUTCOME)
        if status is None:
            return None
        payload = _fields(record)
        error = payload.get("error") or payload.get("message") or _reason(payload.get("detail"))
        attempts = payload.get("attempt")
        if not isinstance(attempts, int):
            attempts = 0
        text = outcome_text(
            status,
            attempts if begun is None else min(attempts, begun),
            error if isinstance(error, str) else None,
        )
        return printable(f"{what} {text}")
    if record.kind == "retry_scheduled":
        payload = _fields(record)
        attempt, delay = payload.get("attempt"), payload.get("delay_ms")
        if isinstance(attempt, int) and isinstance(delay, int):
            when = f"again in {format_duration(delay)}" if delay else "again at once"
            error = short(str(payload.get("error")))
            return printable(f"{what} failed in attempt {attempt - 1}, {when}: {error}")
    return None


def _reason(detail: Any) -> Any:
    """Why a dispatch was skipped; of a gate its name, and where a batch took it in, which."""
    if not isinstance(detail, dict) or "gate" not in detail:
        return detail
    merged = detail.get("merged_into_event_id")
    return f"by the gate {detail['gate']}" + (f", merged into {merged}" if merged else "")


def _fields(record: Record) -> dict[str, Any]:
    """The payload; empty where another program wrote something else."""
    try:
        payload = record.payload
    except StoreError:
        return {}
    return payload if isinstance(payload, dict) else {}
