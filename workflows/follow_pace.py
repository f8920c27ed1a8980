"""When the task of an A2A agent is asked about: at growing intervals, until its time is up."""

from __future__ import annotations

from datetime import datetime, timedelta

from harn_temporal.bindings import FollowTask

LONGEST_PAUSE = timedelta(minutes=5)
"""A pause grows to this, or stays at the first one where that is longer already. It keeps the
history of a task that is followed for the longest time allowed well within Temporal's limits."""

_GROWTH = 1.25


class FollowPace:
    def __init__(self, follow: FollowTask, *, now: datetime) -> None:
        self._pause = timedelta(milliseconds=follow.poll_ms)
        self._longest = max(self._pause, LONGEST_PAUSE)
        self.give_up = now + timedelta(milliseconds=follow.timeout_ms)

    def next_pause(self, now: datetime, *, at_least_ms: int | None = None) -> timedelta | None:
        """How long to wait before the next question, or None where the time is up.

        The last question is asked at the very end of the time. `at_least_ms` is what the agent
        asked for.
        """
        left = self.give_up - now
        if left <= timedelta(0):
            return None
        pause = max(self._pause, timedelta(milliseconds=at_least_ms or 0))
        self._pause = min(self._pause * _GROWTH, self._longest)
        return min(pause, left)
