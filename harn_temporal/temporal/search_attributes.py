"""Registers the search attributes with a Temporal service, or finds out that it refuses them."""

from __future__ import annotations

import logging

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import (
    AddSearchAttributesRequest,
    ListSearchAttributesRequest,
)
from temporalio.client import Client
from temporalio.common import SearchAttributeIndexedValueType, SearchAttributeKey
from temporalio.service import RPCError, RPCStatusCode

from harn_temporal.errors import TemporalUnavailableError
from harn_temporal.workflows.dispatch_page import SEARCH_KEYS

logger = logging.getLogger("harn_temporal.temporal")

_WIRE_TYPES = {
    SearchAttributeIndexedValueType.KEYWORD: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    SearchAttributeIndexedValueType.INT: IndexedValueType.INDEXED_VALUE_TYPE_INT,
}


async def register_search_attributes(client: Client) -> bool:
    """Register what is missing in the client's namespace.

    False, after one warning, where the service refuses: dispatches are then started without
    attributes. Raises TemporalUnavailableError where no service answers.
    """
    try:
        missing = await _missing(client)
        if missing:
            await client.operator_service.add_search_attributes(
                AddSearchAttributesRequest(
                    namespace=client.namespace,
                    search_attributes={key.name: _wire_type(key) for key in missing},
                )
            )
    except RPCError as error:
        if error.status == RPCStatusCode.ALREADY_EXISTS:  # another worker was faster
            return True
        if error.status in (RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED):
            raise TemporalUnavailableError(
                f"the Temporal service at {client.service_client.config.target_host} "
                f"does not answer: {error.message}"
            ) from error
        logger.warning(
            "search_attributes_refused",
            extra={
                "attributes": ", ".join(key.name for key in SEARCH_KEYS),
                "error": error.message,
                "advice": "dispatches start without them and cannot be searched by them; "
                "ask the service's operator to add them",
            },
        )
        return False
    return True


async def _missing(client: Client) -> list[SearchAttributeKey[str] | SearchAttributeKey[int]]:
    present = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace)
    )
    return [key for key in SEARCH_KEYS if key.name not in present.custom_attributes]


def _wire_type(
    key: SearchAttributeKey[str] | SearchAttributeKey[int],
) -> IndexedValueType.ValueType:
    return _WIRE_TYPES[key.indexed_value_type]
