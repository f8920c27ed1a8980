"""How `queue` shows queues and jobs to people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harn_temporal.cli.output import line
from harn_temporal.cli.tables import Column, console_for_people, print_fields, print_table
from harn_temporal.durations import format_duration

if TYPE_CHECKING:
    from harn_temporal.inspection.queue_overview import JobView

SHOWN = 20
"""Keys and dispatches of one list; `--json` has them all."""


def print_overview(found: dict[str, Any]) -> None:
    dispatcher = found["dispatcher"]
    waiting = len(dispatcher["stranded_envelopes"])
    print_fields(
        [
            ("in flight", str(dispatcher["dispatcher_in_flight"])),
            ("retry queue", str(dispatcher["dispatcher_retry_queue_depth"])),
            ("waiting", f"{waiting} envelopes that no dispatch was started for"),
            ("inbox", f"{dispatcher['inbox_envelopes_written']} envelopes"),
            ("dedupe keys", str(dispatcher["inbox_active_entries"])),
        ]
    )
    console = console_for_people()
    console.print()
    if not found["worker_queues"]:
        line("No worker queue was seen yet.")
    else:
        _print_queues(found["worker_queues"])
    for scheduled in found["scheduler"]["per_queue"]:
        if scheduled["keys"]:
            console.print()
            _print_scheduled(scheduled, found["scheduler"]["policy"])
    for title, name in (
        ("In-flight dispatches", "in_flight_dispatches"),
        ("Pending retries", "pending_retries"),
    ):
        _print_some(title, dispatcher[name])


def _print_queues(queues: Sequence[dict[str, Any]]) -> None:
    print_table(
        [
            Column("queue"),
            Column("ready", right=True),
            Column("in flight", right=True),
            Column("delayed", right=True, rank=4),
            Column("acked", right=True),
            Column("purged", right=True, rank=3),
            Column("responses", right=True, rank=2),
            Column("oldest", right=True),
            Column("worst deliveries", right=True, rank=1),
            Column("state"),
        ],
        [
            [
                queue["queue"],
                *(str(queue[n]) for n in ("ready", "in_flight", "delayed", "acked", "purged")),
                str(queue["responses"]),
                _age(queue["oldest_unclaimed_age_ms"]),
                str(queue["worst_deliveries"]),
                f"paused by {queue['paused_by']}" if queue["paused"] else "open",
            ]
            for queue in queues
        ],
    )


def _print_scheduled(scheduled: dict[str, Any], policy: dict[str, Any]) -> None:
    line(
        f"{scheduled['queue']}: {scheduled['strategy']} by {scheduled['fairness_key']}, "
        f"{scheduled['rounds_completed']} rounds, "
        f"{scheduled['starvation_promotions_total']} starvation promotions"
    )
    if scheduled["starving_jobs"]:
        age = format_duration(policy["strategy"]["starvation_age_ms"])
        line(f"fair share suspended: {scheduled['starving_jobs']} jobs older than {age}")
    keys = sorted(scheduled["keys"], key=lambda key: (-key["ready_jobs"], key["fairness_key"]))
    print_table(
        [
            Column("key", cut=True),
            Column("weight", right=True, rank=2),
            Column("credit", right=True, rank=1),
            Column("ready", right=True),
            Column("in flight", right=True),
            Column("selected", right=True),
            Column("deferred", right=True, rank=3),
            Column("oldest", right=True),
        ],
        [
            [
                key["fairness_key"],
                *(str(key[n]) for n in ("weight", "deficit", "ready_jobs", "in_flight")),
                str(key["selected_total"]),
                str(key["deferred_total"]),
                _age(key["oldest_ready_age_ms"] or None),
            ]
            for key in keys[:SHOWN]
        ],
    )
    if len(keys) > SHOWN:
        line(f"… and {len(keys) - SHOWN} more keys")


def print_jobs(views: Sequence[JobView], now_ms: int) -> None:
    if not views:
        line("No such jobs.")
        return
    print_table(
        [
            Column("job", right=True),
            Column("state"),
            Column("trigger"),
            Column("key", cut=True),
            Column("priority", rank=3),
            Column("age", right=True),
            Column("deliveries", right=True, rank=1),
            Column("promoted in", right=True, rank=4),
            Column("claimed by", rank=2),
            Column("claim expires in", right=True),
        ],
        [
            [
                str(view.job.job_event_id),
                view.state,
                view.job.trigger_id,
                view.fairness_key,
                view.job.priority,
                _age(max(0, now_ms - view.job.enqueued_at_ms)),
                str(view.job.deliveries),
                _until(view.promotion_deadline_at_ms, now_ms),
                view.job.consumer_id or "-",
                _until(view.job.expires_at_ms, now_ms),
            ]
            for view in views
        ],
    )


def _print_some(title: str, items: Sequence[str]) -> None:
    if items:
        line("")
        line(f"{title}:")
        for item in items[:SHOWN]:
            line(f"  {item}")
        if len(items) > SHOWN:
            line(f"  … and {len(items) - SHOWN} more")


def _age(age_ms: int | None) -> str:
    return "-" if age_ms is None else format_duration(age_ms // 1000 * 1000)


def _until(at_ms: int | None, now_ms: int) -> str:
    if at_ms is None:
        return "-"
    return _age(at_ms - now_ms) if at_ms > now_ms else "now"
