"""When a task is asked about, to the very edge of its time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from harn_temporal.bindings import FollowTask
from harn_temporal.workflows.follow_pace import LONGEST_PAUSE, FollowPace

NOW = datetime(2027, 1, 15, 8, tzinfo=UTC)


def pauses(timeout: timedelta, poll: timedelta) -> list[timedelta]:
    """Every pause of a task that never ends, where asking takes no time."""
    ms = timedelta(milliseconds=1)
    pace = FollowPace(FollowTask(timeout_ms=timeout // ms, poll_ms=poll // ms), now=NOW)
    now, found = NOW, []
    while (pause := pace.next_pause(now)) is not None:
        found.append(pause)
        now += pause
    return found


def test_pauses_grow_and_the_last_question_is_asked_at_the_very_end():
    found = pauses(timedelta(seconds=20), timedelta(seconds=4))
    assert [pause.total_seconds() for pause in found] == [4, 5, 6.25, 4.75]


def test_pauses_grow_to_five_minutes_and_stay_there():
    found = pauses(timedelta(hours=5), timedelta(seconds=5))
    assert max(found) == LONGEST_PAUSE
    assert found[30:-1] == [LONGEST_PAUSE] * (len(found) - 31)
    long = pauses(timedelta(hours=1), timedelta(minutes=10))
    assert [pause.total_seconds() for pause in long] == [600] * 6


def test_the_longest_task_fits_a_history():
    """A question makes some eleven events, and Temporal ends a workflow at 51,200."""
    assert len(pauses(timedelta(days=7), timedelta(seconds=1))) * 11 < 25_000


def test_what_the_agent_asks_for_is_kept_but_not_past_the_end():
    pace = FollowPace(FollowTask(timeout_ms=60_000, poll_ms=1_000), now=NOW)
    assert pace.next_pause(NOW, at_least_ms=7_000) == timedelta(seconds=7)
    assert pace.next_pause(NOW, at_least_ms=100_000) == timedelta(minutes=1)
    assert pace.next_pause(NOW + timedelta(seconds=59.999)) == timedelta(milliseconds=1)
    assert pace.next_pause(NOW + timedelta(seconds=60)) is None
