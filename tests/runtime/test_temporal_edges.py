"""What crosses to Temporal: texts of failures, search attributes, requests."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
from temporalio.api.failure.v1 import Failure
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from harn_temporal.activities.envelopes import Envelopes
from harn_temporal.errors import StoreError, TemporalUnavailableError
from harn_temporal.eventlog.records import Append
from harn_temporal.temporal.converter import MESSAGE_LIMIT, data_converter
from harn_temporal.temporal.sandbox import MODELS, workflow_runner
from harn_temporal.temporal.search_attributes import register_search_attributes


def failure_of(error):
    failure = Failure()
    data_converter.failure_converter.to_failure(error, data_converter.payload_converter, failure)
    return failure


def test_a_failure_is_always_encoded_with_its_cause_and_details():
    error = ApplicationError("lone \ud800", {"a": 1}, type="AttemptFailed", non_retryable=True)
    error.__cause__ = ValueError("also \udfff " + "x" * MESSAGE_LIMIT)
    failure = failure_of(error)
    assert failure.message == "lone \ufffd"
    assert failure.application_failure_info.type == "AttemptFailed"
    assert failure.application_failure_info.non_retryable
    assert failure.application_failure_info.details.payloads[0].data == b'{"a":1}'
    assert failure.cause.message.startswith("also \ufffd xxx")
    assert len(failure.cause.message) == MESSAGE_LIMIT
    assert failure.cause.application_failure_info.type == "ValueError"


class Refusing:
    def __init__(self, status):
        self._status = status

    async def list_search_attributes(self, message):
        raise RPCError("no", self._status, b"")


def client_with(operator_service):
    return SimpleNamespace(
        operator_service=operator_service,
        namespace="default",
        service_client=SimpleNamespace(config=SimpleNamespace(target_host="there:7233")),
    )


async def test_a_service_that_refuses_search_attributes_costs_one_warning(caplog):
    client = client_with(Refusing(RPCStatusCode.PERMISSION_DENIED))
    with caplog.at_level(logging.WARNING):
        assert not await register_search_attributes(client)
    assert len(caplog.records) == 1
    assert caplog.records[0].msg == "search_attributes_refused"
    assert caplog.records[0].attributes.startswith("HarnTrigger, ")


async def test_a_service_that_is_away_is_no_refusal():
    client = client_with(Refusing(RPCStatusCode.UNAVAILABLE))
    with pytest.raises(TemporalUnavailableError, match="there:7233"):
        await register_search_attributes(client)


MARK = {"harn_temporal.package": "demo"}


async def appended(log, payload):
    [record] = (
        await log.append([Append("trigger.inbox.envelopes", "event_ingested", payload, MARK)])
    ).records
    return record


@pytest.fixture
def requested(log, binding):
    async def make(payload, *, current=(), stored=None):
        envelopes = Envelopes(
            store_id=log.store_id,
            package="demo",
            current={each.trigger_id: each for each in current},
            search_attributes=True,
            heartbeat_timeout_ms=30_000,
        )
        record = await appended(log, payload)
        [request] = envelopes.requests(record, lambda trigger_id, version: stored)
        return request

    return make


async def test_an_envelope_keeps_the_version_it_was_accepted_under(requested, request_, binding):
    payload = {"trigger_id": "on-push", "binding_version": 1, "event": request_.event.to_json()}
    newer = binding.model_copy(update={"version": 2})
    stored = binding.model_dump(mode="json")
    assert (await requested(payload, current=[newer], stored=stored)).binding == binding
    assert (await requested(payload, current=[newer])).binding == newer
    foreign = stored | {"package": "other"}
    assert (await requested(payload, current=[newer], stored=foreign)).binding == newer


async def test_an_envelope_for_an_unknown_trigger_says_so(requested, request_):
    payload = {"trigger_id": "gone", "binding_version": 1, "event": request_.event.to_json()}
    with pytest.raises(StoreError, match=r"envelope 1 of topic .* is for trigger 'gone'"):
        await requested(payload)


@pytest.mark.parametrize(("size", "inline"), [(1_000, True), (40_000, False)])
async def test_only_a_small_event_is_carried(requested, request_, binding, size, inline):
    event = request_.event.model_copy(
        update={"provider_payload": {"provider": "github", "raw": "x" * size, "event": "push"}}
    )
    payload = {"trigger_id": "on-push", "binding_version": 1, "event": event.to_json()}
    made = await requested(payload, current=[binding])
    assert (made.event is not None) is inline
    assert (made.event_id, made.address.event_id) == (event.id, 1)


def test_replays_share_only_models_with_the_sandbox():
    strict = workflow_runner(strict=True)
    assert isinstance(strict, SandboxedWorkflowRunner)
    passed = strict.restrictions.passthrough_modules
    assert set(MODELS) <= passed
    assert not {name for name in passed if name.startswith("harn_temporal.workflows")}
    assert "harn_temporal" not in passed


def test_workers_import_nothing_anew_for_a_run():
    assert isinstance(workflow_runner(), UnsandboxedWorkflowRunner)
