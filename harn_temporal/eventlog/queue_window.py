"""A queue as selection sees it inside one transaction, by index, with what was taken so far.

Several selections are made before any is written: what they take is kept here, over what the
tables say. So a batch of claims costs one append, and each lane and balance one update.
"""

from __future__ import annotations

import bisect
import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from harn_temporal.eventlog.ready_jobs import HeadsByAge, ReadyJob
from harn_temporal.eventlog.statements import Statements
from harn_temporal.scheduler import selection as selecting
from harn_temporal.scheduler.candidates import RANKS, Candidate
from harn_temporal.scheduler.policy import Policy
from harn_temporal.scheduler.selection import Allowed, ReadyJobs, Selection

_PAGE = 64

_Lane = tuple[int, int]
"""A group and a rank."""


class QueueWindow(ReadyJobs):
    """`queue` is the name as part of a topic; keys in `excluded` are not for who asks here.

    `wanted` is how many selections are about to be made: it says how far to read ahead.
    Call `save` when all selections are made.
    """

    def __init__(
        self,
        statements: Statements,
        queue_id: int,
        queue: str,
        policy: Policy,
        *,
        excluded: Collection[str],
        wanted: int,
    ) -> None:
        self._statements = statements
        self._excluded = excluded
        self._queue_id = queue_id
        self._policy = policy
        self._scope = {"queue": queue, "dimension": policy.fairness_key}
        rows = statements.rows("queues.round", **self._scope)
        self._last_key: str | None
        self._given_to: str | None
        self._last_key, self.rounds, self.starvations, self._given_from, self._given_to = (
            rows[0] if rows else (None, 0, 0, "", None)
        )
        self._round_changed = False
        self._page = max(1, min(_PAGE, wanted))
        self._ages: tuple[HeadsByAge, ...] | None = None
        self._stale: dict[str, dict[_Lane, Candidate]] = {}
        """By key: lanes whose head was taken, and of which nobody asked for the next job yet."""
        self._heads: dict[str, dict[_Lane, ReadyJob]] = {}
        self._moved: dict[_Lane, ReadyJob | None] = {}
        self._touched: set[str] = set()
        self._in_flight: dict[str, int] = {}
        self._balances: dict[str, int] = {}
        self._changed: set[str] = set()
        self._selected: Counter[str] = Counter()
        self._idle: set[str] = set()
        self._credited: list[tuple[str, int]] = []
        self._credited_from: str | None = None
        self._credited_all = False

    @property
    def last_key(self) -> str | None:
        return self._last_key

    def oldest(self, rank: int) -> Iterator[ReadyJob]:
        if self._ages is None:
            self._ages = self._read_ages()
        for key in list(self._stale):
            self._advance_lanes(key)
        return iter(self._ages[rank])

    def heads(self, key: str) -> Collection[ReadyJob]:
        self._advance_lanes(key)
        return self._heads_of(key).values()

    def in_flight(self, key: str) -> int:
        found = self._in_flight.get(key)
        if found is None:
            rows = self._statements.rows(
                "queues.in_flight",
                queue_id=self._queue_id,
                dimension=self._policy.fairness_key,
                key=key,
            )
            found = self._in_flight[key] = int(rows[0][0])
        return found

    def credited(self) -> Iterator[str]:
        last, given_to = self._last_key or "", self._given_to
        if given_to is None:
            yield from self._credited_after(last, None)
            yield from self._credited_after("", last)
        elif given_to >= last:
            yield from self._credited_after(last, given_to)
        else:
            yield from self._credited_after(last, None)
            yield from self._credited_after("", given_to)

    def refill(self, policy: Policy, allowed: Allowed) -> None:
        if self._given_to is None:
            self.rounds += 1
            self._given_from = self._last_key or ""
        keys = list(islice(self._ungiven(), selecting.GRANTED_AT_ONCE + 1))
        now = keys[: selecting.GRANTED_AT_ONCE]
        self._given_to = None if now == keys else now[-1]
        self._round_changed = True
        for key in now:
            if allowed(key):
                self._set_balance(key, policy.grant(key))
        self._forget_credited()

    def _ungiven(self) -> Iterator[str]:
        """Keys with ready jobs that the present round has not come to, in the order of turns."""
        start, after = self._given_from, self._given_to
        if after is None or after > start:
            yield from self._ready_after(start if after is None else after, None)
            after = ""
        yield from self._ready_after(after, start)

    def _ready_after(self, after: str, until: str | None) -> Iterator[str]:
        limit = selecting.GRANTED_AT_ONCE + 1
        while True:
            rows = self._statements.rows(
                "queues.ready_keys",
                queue_id=self._queue_id,
                dimension=self._policy.fairness_key,
                after=after,
                limit=limit,
            )
            for (key,) in rows:
                if until is not None and key > until:
                    return
                # What this transaction has taken, the tables do not know yet.
                if key not in self._touched or self.heads(key):
                    yield key
            if len(rows) < limit:
                return
            after = rows[-1][0]

    def take(self, selection: Selection) -> None:
        """Apply a selection: its job is no longer ready."""
        candidate = selection.candidate
        key = candidate.key
        self._touched.add(key)
        if self._policy.max_concurrent_per_key:
            self._in_flight[key] = self.in_flight(key) + 1
        self._stale.setdefault(key, {})[candidate.lane, candidate.rank] = candidate
        self._selected[key] += 1
        if selection.starved:
            self.starvations += 1
            self._round_changed = True
        if selection.spends:
            self._set_balance(key, self._balances[key] - 1)
            self._last_key = key
            self._round_changed = True

    def pass_over(self, candidate: Candidate) -> None:
        """The job is not ready after all, or not for who asks here."""
        self._touched.add(candidate.key)
        self._stale.setdefault(candidate.key, {})[candidate.lane, candidate.rank] = candidate

    def defer(self) -> list[str]:
        """No key is eligible: count for those with ready jobs that they were deferred."""
        rows = self._statements.rows(
            "queues.defer",
            **self._scope,
            queue_id=self._queue_id,
            but=json.dumps(sorted(self._excluded)),
        )
        return [key for (key,) in rows]

    def save(self) -> None:
        if self._round_changed:
            self._statements.run(
                "queues.save_round",
                **self._scope,
                last_key=self._last_key,
                rounds=self.rounds,
                given_from=self._given_from,
                given_to=self._given_to,
                starvations=self.starvations,
            )
        self._statements.run_many(
            "queues.save_credit",
            [
                {
                    **self._scope,
                    "key": key,
                    "credit": self._balances[key],
                    "selected": self._selected.pop(key, 0),
                }
                for key in sorted(self._changed)
            ],
        )
        self._statements.run_many(
            "queues.count_selected",
            [
                {**self._scope, "key": key, "selected": count}
                for key, count in self._selected.items()
            ],
        )
        self._statements.run_many(
            "queues.save_idle", [{**self._scope, "key": key} for key in sorted(self._idle)]
        )

    def _read_ages(self) -> tuple[HeadsByAge, ...]:
        firsts: list[list[ReadyJob]] = [[] for _ in RANKS]
        dimension = self._policy.fairness_key
        for row in self._statements.rows(
            "queues.first_by_age", queue_id=self._queue_id, dimension=dimension
        ):
            firsts[row[2]].append(ReadyJob(*row))
        ages = tuple(
            HeadsByAge(self._statements, self._queue_id, dimension, rank, firsts[rank])
            for rank in RANKS
        )
        for (lane, rank), following in self._moved.items():
            ages[rank].move(lane, following)
        return ages

    def _advance_lanes(self, key: str) -> None:
        for candidate in self._stale.pop(key, {}).values():
            self._advance(candidate)

    def _advance(self, candidate: Candidate) -> None:
        """Put the job after `candidate` at the head of its lane."""
        rows = self._statements.rows(
            "queues.next_in_lane",
            key=candidate.key,
            group_id=candidate.lane,
            rank=candidate.rank,
            after_at_ms=candidate.due_at_ms,
            after_id=candidate.job_id,
        )
        following = ReadyJob(*rows[0]) if rows else None
        if self._ages is not None:
            self._ages[candidate.rank].move(candidate.lane, following)
        lane = (candidate.lane, candidate.rank)
        self._moved[lane] = following
        heads = self._heads.get(candidate.key)
        if heads is not None:
            _set_head(heads, lane, following)

    def _heads_of(self, key: str) -> dict[_Lane, ReadyJob]:
        if key not in self._heads:
            self._read_heads([key])
        return self._heads[key]

    def _read_heads(self, keys: Sequence[str]) -> None:
        rows = self._statements.rows(
            "queues.heads",
            queue_id=self._queue_id,
            dimension=self._policy.fairness_key,
            keys=json.dumps(keys),
        )
        self._heads.update((key, {}) for key in keys)
        for row in rows:
            self._heads[row[1]][row[5], row[2]] = ReadyJob(*row)
        for key in keys:
            heads = self._heads[key]
            for lane in heads.keys() & self._moved.keys():
                _set_head(heads, lane, self._moved[lane])

    def _credited_after(self, after: str, until: str | None) -> Iterator[str]:
        """Keys with a positive balance, after `after` and up to `until`, in order."""
        while True:
            page, more = self._credited_page(after)
            for key, credit in page:
                if until is not None and key > until:
                    return
                after = key
                balance = self._balances.setdefault(key, min(credit, self._policy.grant(key)))
                if balance <= 0:
                    continue
                if self.heads(key):
                    yield key
                elif key not in self._touched:
                    self._idle.add(key)
            if not more:
                return

    def _credited_page(self, after: str) -> tuple[list[tuple[str, int]], bool]:
        """Keys after `after` that had credit when they were read, and whether more may follow."""
        if self._credited_from is not None and self._credited_from <= after:
            found = self._credited[bisect.bisect_right(self._credited, after, key=_key) :]
            if found or self._credited_all:
                return found, bool(found) and not self._credited_all
        rows = self._statements.rows(
            "queues.credited", **self._scope, after=after, limit=self._page
        )
        self._credited, self._credited_from = rows, after
        self._credited_all = len(rows) < self._page
        unread = [key for key, _ in rows if key not in self._heads]
        if unread:
            self._read_heads(unread)
        return rows, not self._credited_all

    def _forget_credited(self) -> None:
        """Balances have grown: those changed here are written, so that an index finds them."""
        self._write_balances()
        self._credited, self._credited_from, self._credited_all = [], None, False

    def _write_balances(self) -> None:
        self._statements.run_many(
            "queues.save_credit",
            [
                {
                    **self._scope,
                    "key": key,
                    "credit": self._balances[key],
                    "selected": 0,
                }
                for key in sorted(self._changed)
            ],
        )
        self._changed.clear()
        self._balances.clear()

    def _set_balance(self, key: str, balance: int) -> None:
        self._balances[key] = balance
        self._changed.add(key)
        self._idle.discard(key)


def _set_head(heads: dict[_Lane, ReadyJob], lane: _Lane, head: ReadyJob | None) -> None:
    if head is None:
        heads.pop(lane, None)
    else:
        heads[lane] = head


def _key(pair: tuple[str, int]) -> str:
    return pair[0]
