"""The jobs at the heads of a queue's lanes, as selection reads them."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harn_temporal.eventlog.statements import Statements
from harn_temporal.scheduler.candidates import Candidate


@dataclass(frozen=True, slots=True)
class ReadyJob(Candidate):
    """A job of a lane; `lane` is its group. `claim_id` is that of a claim that has expired."""

    event_id: str = ""
    claim_id: str = ""
    expires_at_ms: int = 0
    deliveries: int = 0

    def is_ready(self, now_ms: int) -> bool:
        """False where somebody whose clock is ahead of ours moved it before its time."""
        claimed = self.claim_id != "" and self.expires_at_ms > now_ms
        return not claimed and self.due_at_ms <= max(now_ms, self.enqueued_at_ms)


class HeadsByAge:
    """The heads of the lanes of one rank, oldest first; read in pages, as far as needed."""

    def __init__(
        self,
        statements: Statements,
        queue_id: int,
        dimension: str,
        rank: int,
        first: Sequence[ReadyJob],
    ) -> None:
        self._statements = statements
        self._where = {"queue_id": queue_id, "dimension": dimension, "rank": rank}
        self._read = list(first)
        self._after = first[0].by_age if first else (0, 0)
        self._more = bool(first)
        self._moved: set[int] = set()
        self._heads: list[tuple[int, int, ReadyJob]] = []
        """Of the lanes that were moved on."""
        self._limit = 8

    def __iter__(self) -> Iterator[ReadyJob]:
        read, moved = self._unmoved(), iter(self._heads)
        left, right = next(read, None), next(moved, None)
        while left is not None or right is not None:
            if right is None or (left is not None and left.by_age < right[:2]):
                assert left is not None  # one of the two is there
                yield left
                left = next(read, None)
            else:
                yield right[2]
                right = next(moved, None)

    def move(self, lane: int, following: ReadyJob | None) -> None:
        """A lane's head was taken, and `following` is its head now."""
        if lane in self._moved:
            self._heads = [head for head in self._heads if head[2].lane != lane]
        self._moved.add(lane)
        if following is not None:
            bisect.insort(self._heads, (*following.by_age, following))

    def _unmoved(self) -> Iterator[ReadyJob]:
        while self._read and self._read[0].lane in self._moved:
            del self._read[0]
        index = 0
        while True:
            while index < len(self._read):
                if self._read[index].lane not in self._moved:
                    yield self._read[index]
                index += 1
            if not self._more:
                return
            self._read_more()

    def _read_more(self) -> None:
        after = self._after
        rows = self._statements.rows(
            "queues.by_age",
            **self._where,
            after_at_ms=after[0],
            after_id=after[1],
            limit=self._limit,
        )
        self._more = len(rows) == self._limit
        self._limit = min(self._limit * 4, 512)
        self._read.extend(ReadyJob(*row) for row in rows)
        if self._read:
            self._after = self._read[-1].by_age
