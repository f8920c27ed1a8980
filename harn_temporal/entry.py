"""The console script. Every way out of the program is here, each with its exit code.

0 done; 1 the work itself failed; 2 wrong usage or an invalid manifest; 3 the Temporal service or
the EventLog cannot be reached; 130 interrupted; 141 the reader of our output went away.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what takes time is imported where Ctrl-C is caught
    from collections.abc import Sequence
    from typing import NoReturn

INTERNAL_ERROR = 1
INTERRUPTED = 130
BROKEN_PIPE = 141


def main() -> NoReturn:
    """Run the command line and end the process.

    The process ends through `os._exit`, once all output is flushed: a thread of the Temporal SDK
    may ask for the GIL while the interpreter finalizes, which aborts with PyGILState_Release.
    """
    try:
        _open_missing_streams()
        _escape_what_the_locale_lacks()
        code = run(sys.argv[1:])
        _stop_tracing()
        code = _flushed(code)
    except KeyboardInterrupt:  # before and after the command, which catches its own
        code = INTERRUPTED
    os._exit(code)


def _escape_what_the_locale_lacks() -> None:
    import io

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _stop_tracing() -> None:
    from harn_temporal.telemetry import tracing

    tracing.stop()


def _open_missing_streams() -> None:
    """Where a parent closed stdin, stdout or stderr: nothing comes in there, and nothing goes out.

    Python sets such a stream to None, and the next file that is opened gets its descriptor.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is not None:
            continue
        descriptor = os.open(os.devnull, os.O_RDWR)
        if descriptor != number:
            os.dup2(descriptor, number)
            os.close(descriptor)
        setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - open to the end


def run(arguments: Sequence[str]) -> int:
    """Run one command line and give its exit code. Messages for people go to stderr."""
    from harn_temporal.cli.app import build_app
    from harn_temporal.cli.options import CommonOptions

    options = CommonOptions()
    try:
        code = build_app().main(
            list(arguments), prog_name="harn-temporal", obj=options, standalone_mode=False
        )
    except BaseException as error:  # noqa: BLE001 - the last resort: no traceback reaches a user
        return _code_of(_innermost(error), debug=options.debug)
    return code if isinstance(code, int) else 0


def _code_of(error: BaseException, *, debug: bool) -> int:
    import typer

    if isinstance(error, SystemExit):  # rich leaves so where the reader of our output is gone
        gone = isinstance(error.__context__, BrokenPipeError)
        return BROKEN_PIPE if gone else INTERNAL_ERROR
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return INTERRUPTED
    if isinstance(error, typer.TyperException):
        return _refuse(error)
    return _report(error, debug=debug)


def _refuse(error: object) -> int:
    """A command line that does not parse: its usage, what is wrong, where the help is."""
    context = getattr(error, "ctx", None)
    message = getattr(error, "format_message", lambda: str(error))()
    if not message.strip():  # a group without its subcommand: typer has printed the help
        return 2
    _say(f"error: {message.replace(': Value error, ', ': ')}")  # pydantic's words
    if context is not None:
        _say(f"{context.get_usage()}\nTry '{context.command_path} --help'.")
    return int(getattr(error, "exit_code", 2))


def _report(error: BaseException, *, debug: bool) -> int:
    from harn_temporal.errors import HarnTemporalError

    if debug:
        import traceback

        _say("".join(traceback.format_exception(error)).rstrip())
    if isinstance(error, HarnTemporalError):
        _say(f"error: {error}")
        return error.exit_code
    if isinstance(error, OSError) and error.strerror:  # the machine's fault: disk full and the like
        _say(f"error: {error.strerror}" + (f": {error.filename}" if error.filename else ""))
        return INTERNAL_ERROR
    _say(f"error: unexpected {type(error).__name__}: {error}")
    if not debug:
        _say("This is a fault of harn-temporal. `--debug` shows where it happened.")
    return INTERNAL_ERROR


def _innermost(error: BaseException) -> BaseException:
    """The error itself where task groups have wrapped a single one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _say(text: str) -> None:
    from harn_temporal.cli.output import standard_stream

    try:
        print(text, file=standard_stream("stderr"))
    except BrokenPipeError:
        return  # nobody reads our messages any more; the exit code still says it


def _flushed(code: int) -> int:
    """The exit code, after both streams are flushed, or another if stdout could not be."""
    from contextlib import suppress

    try:
        with suppress(ValueError):  # a handler has closed it, which flushed it
            sys.stdout.flush()
    except BrokenPipeError:
        code = code or BROKEN_PIPE
    except OSError as error:
        _say(f"error: cannot write the output: {error.strerror}")
        code = code or INTERNAL_ERROR
    try:
        sys.stderr.flush()
    except (OSError, ValueError):
        return code
    return code
