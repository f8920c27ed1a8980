"""How values and failures cross to Temporal: pydantic's JSON, and text that always encodes."""

from __future__ import annotations

from temporalio.api.failure.v1 import Failure
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import DataConverter, DefaultFailureConverter, PayloadConverter
from temporalio.exceptions import ApplicationError, FailureError

MESSAGE_LIMIT = 2_000
"""Characters of a failure's message. The whole text lies in the EventLog."""


def message_text(text: str) -> str:
    """`text` without lone surrogates, which protobuf refuses, and cut to what is read there."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole if len(whole) <= MESSAGE_LIMIT else f"{whole[: MESSAGE_LIMIT - 1]}…"


class TextSafeFailureConverter(DefaultFailureConverter):
    """A failure must always arrive: one that cannot be encoded retries its task for ever."""

    def to_failure(
        self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure
    ) -> None:
        super().to_failure(_with_safe_text(exception), payload_converter, failure)


def _with_safe_text(exception: BaseException) -> BaseException:
    if isinstance(exception, ApplicationError):
        safe = message_text(exception.message)
        if exception.failure is not None or safe == exception.message:
            return exception
        replaced = ApplicationError(
            safe,
            *exception.details,
            type=exception.type,
            non_retryable=exception.non_retryable,
            next_retry_delay=exception.next_retry_delay,
            category=exception.category,
        )
    elif isinstance(exception, FailureError):  # Temporal's own words, or its own failure
        return exception
    else:
        replaced = ApplicationError(message_text(str(exception)), type=type(exception).__name__)
    replaced.__traceback__ = exception.__traceback__
    replaced.__cause__ = exception.__cause__
    replaced.__context__ = exception.__context__
    replaced.__suppress_context__ = exception.__suppress_context__
    return replaced


data_converter = DataConverter(
    payload_converter_class=PydanticPayloadConverter,
    failure_converter_class=TextSafeFailureConverter,
)
"""For every client of this package: `Client.connect(..., data_converter=data_converter)`."""
