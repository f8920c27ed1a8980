"""Every error of this package descends from HarnTemporalError.

HarnTemporalError
├── UsageError                  wrong options or arguments                          exit 2
├── ManifestError               an invalid harn.toml, with all its problems         exit 2
├── HandlerLoadError            a handler that cannot be imported or called         exit 2
├── EventError                  an event that cannot be ingested                    exit 2
├── NotJsonError                a value that JSON cannot hold                       exit 2
├── ExpressionError             a CEL or JMESPath expression that is wrong or failed  exit 2
├── NotFoundError               what was asked for does not exist                   exit 2
├── DispatchFailedError         the work itself failed                              exit 1
├── DispatchRefusedError        a dispatch that Temporal will never take             exit 1
├── HandlerStoppedLoopError     a handler ended the command that ran it             exit 1
├── UnavailableError            a service that cannot be reached                    exit 3
│   ├── StoreUnavailableError   the EventLog
│   └── TemporalUnavailableError
├── StoreError                  an EventLog that can be reached but not used        exit 3
├── StoreUpgradedError          an EventLog that a newer version has taken over     exit 3
└── HandlerError                what a handler raises to steer its dispatch
    ├── Denied                  not retried, ends as failed
    └── Waiting                 not retried, ends as waiting
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class HarnTemporalError(Exception):
    """The root. Its message says what was wrong, where, and what to do."""

    exit_code: ClassVar[int] = 1


class UsageError(HarnTemporalError):
    exit_code = 2


class ManifestError(HarnTemporalError):
    """An invalid manifest. `problems` holds a sentence for each mistake found."""

    exit_code = 2

    def __init__(self, path: str, problems: Sequence[str]) -> None:
        self.path = path
        self.problems = tuple(problems)
        count = len(self.problems)
        heading = f"{path}: {count} problem{'s' if count != 1 else ''}"
        super().__init__("\n".join([heading, *(f"  - {problem}" for problem in self.problems)]))


class EventError(HarnTemporalError):
    exit_code = 2


class NotJsonError(HarnTemporalError):
    """A value that JSON cannot hold. The message names its place in it, such as `$.a[3].b`."""

    exit_code = 2


class HandlerLoadError(HarnTemporalError):
    """A handler that is missing, does not import, or takes the wrong arguments."""

    exit_code = 2


class ExpressionError(HarnTemporalError):
    """An expression that cannot be compiled, or that failed on an event."""

    exit_code = 2


class NotFoundError(HarnTemporalError):
    exit_code = 2


class DispatchFailedError(HarnTemporalError):
    exit_code = 1


class DispatchRefusedError(HarnTemporalError):
    """Temporal refuses to start this dispatch, and would do so again."""


class UnavailableError(HarnTemporalError):
    exit_code = 3


class StoreUnavailableError(UnavailableError):
    """The EventLog cannot be reached just now; trying again may help."""


class TemporalUnavailableError(UnavailableError):
    """No Temporal service answers; the message names the address tried and how to start one."""


class StoreError(HarnTemporalError):
    """The EventLog answers, but its content or version does not let us work with it."""

    exit_code = 3


class StoreUpgradedError(HarnTemporalError):
    """A newer version of this program uses the EventLog; this process can do no more with it.

    No StoreError: waiting does not help, so that whoever waits out a store that cannot be used
    lets this one pass, up to the end of the process.
    """

    exit_code = 3


class HandlerStoppedLoopError(HarnTemporalError):
    """A handler ended the event loop of the command that ran it."""


class HandlerError(HarnTemporalError):
    """Raised by handlers to end a dispatch without retries."""


class Denied(HandlerError):  # noqa: N818 - an outcome's name, raised by handler authors
    """The event must not be handled. The dispatch ends as failed, without retry or dead letter."""


class Waiting(HandlerError):  # noqa: N818 - an outcome's name, raised by handler authors
    """The work waits for something outside. The dispatch ends as waiting, without retry."""
