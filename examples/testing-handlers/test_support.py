"""The triggers and handlers of harn.toml, tested without a server."""

import json
from pathlib import Path

import pytest

from harn_temporal.testing import Workbench, cancel, make_context, make_event

HERE = Path(__file__).parent
TICKET = json.loads((HERE / "ticket.json").read_text(encoding="utf-8"))


class BillingInTests:
    """Fails as often as it is told, then gives a receipt."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.refunded: list[tuple[str, int]] = []

    async def refund(self, ticket: str, cents: int) -> str:
        if self.failures:
            self.failures -= 1
            raise ConnectionError("billing is down")
        self.refunded.append((ticket, cents))
        return f"R-{ticket}"


@pytest.fixture
def bench():
    with Workbench(HERE / "harn.toml") as bench:
        yield bench


@pytest.fixture
def billing(bench, monkeypatch):
    """The handlers' module is the manifest's own copy: it is found through the bench."""
    found = BillingInTests(failures=0)
    monkeypatch.setattr(bench.module("handlers"), "billing", found)
    return found


def ticket(bench, **changes):
    return bench.event("webhook", "ticket.created", TICKET | changes)


def test_both_triggers_handle_a_ticket(bench, billing):
    delivery = bench.deliver(ticket(bench))
    delivery["greet"].assert_succeeded({"ticket": "T-1041", "reply": "Hello Ada"})
    delivery["refund"].assert_succeeded({"receipt": "R-T-1041"}, attempts=1)
    assert billing.refunded == [("T-1041", 1290)]


def test_a_colleague_is_not_greeted(bench, billing):
    delivery = bench.deliver(ticket(bench, author={"name": "Bob", "role": "agent"}))
    delivery["greet"].assert_status("skipped")


def test_other_topics_are_filtered(bench, billing):
    bench.deliver(ticket(bench, topic="password"))["refund"].assert_status("filtered")
    assert billing.refunded == []


def test_a_refund_is_tried_again_until_billing_is_back(bench, billing):
    billing.failures = 2
    refund = bench.deliver(ticket(bench))["refund"]
    refund.assert_succeeded({"receipt": "R-T-1041"}, attempts=3)
    assert refund.waited_ms == 5_000 + 300_000  # of the svix schedule; no test waits for it


def test_a_refund_that_never_works_is_a_dead_letter(bench, billing):
    billing.failures = 99
    refund = bench.deliver(ticket(bench))["refund"]
    refund.assert_status("dlq", attempts=4, error="billing is down")
    assert [record.kind for record in refund.records if record.topic == "trigger.dlq"] == [
        "dlq_moved"
    ]


def test_a_large_refund_is_denied_and_not_tried_again(bench, billing):
    refund = bench.deliver(ticket(bench, cents=60_000))["refund"]
    refund.assert_status("failed", attempts=1, error="need a person's consent")
    assert refund.attempts[0].status == "denied"


def test_a_ticket_is_refunded_once(bench, billing):
    bench.deliver(ticket(bench))["refund"].assert_succeeded()
    bench.clock.advance("2d")
    bench.deliver(ticket(bench))["refund"].assert_status("duplicate")
    bench.clock.advance("1d")  # retention_days = 3
    bench.deliver(ticket(bench))["refund"].assert_succeeded()
    assert len(billing.refunded) == 2


def test_one_trigger_by_itself(bench, billing):
    delivery = bench.deliver(ticket(bench, topic="refund"), only="refund")
    assert delivery.triggers == ("refund",)


def test_a_handler_called_as_a_function(bench):
    greet = bench.module("handlers").greet
    event = make_event("webhook", "ticket.created", HERE / "ticket.json")
    assert greet(event)["reply"] == "Hello Ada"


def test_a_context_for_a_function():
    context = make_context(attempt=3)
    assert (context.attempt, context.cancelled) == (3, False)
    cancel(context)
    assert context.cancelled
