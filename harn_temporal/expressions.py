"""CEL and JMESPath expressions over an event, compiled once and evaluated per event.

Both packages are imported when the first expression is compiled, since `cel` takes half a second.
Evaluation is synchronous and holds the GIL; an expression costs some ten microseconds, as `cel`
is given only the parts of the event that the expression names, and not a body of megabytes.
A compiled expression may be evaluated by several threads at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harn_temporal.errors import ExpressionError
from harn_temporal.expression_paths import (
    Path,
    cel_bound_names,
    cel_paths,
    headers_named,
    jmespath_paths,
    negates_too_little,
)

if TYPE_CHECKING:
    from jmespath.parser import ParsedResult

SOURCE_LIMIT = 2_000
"""Characters. A chain of several thousand selectors ends the process: `cel` recurses natively."""

_SHOWN_LIMIT = 200
_CEL_TYPES = frozenset(
    {"bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"}
)
_CEL_NAMESPACES = frozenset({"optional"})


class CelExpression:
    """A compiled CEL expression. Make it with `compile_cel`."""

    def __init__(self, source: str, program: Any, paths: Sequence[Path]) -> None:
        self.source = source
        self._program = program
        self._paths = paths
        self.headers = headers_named(paths)
        self.names = frozenset(path[0] for path in paths)
        """What it reads from, of the names that it was compiled over, and those it binds itself."""

    def evaluate(self, event: Mapping[str, Any]) -> Any:
        """The value for `event`, a TriggerEvent as JSON; None where a field it needs is missing.

        A field that is null counts as missing as soon as the expression reads on from it or
        computes with it. Raises ExpressionError when the evaluation fails for another reason.
        """
        return self.evaluate_in({"event": event})

    def evaluate_in(self, scope: Mapping[str, Mapping[str, Any]]) -> Any:
        """As `evaluate`, for all the names that the expression was compiled over."""
        given = {name: self._needed(name, value) for name, value in scope.items()}
        try:
            return self._program.execute(given)
        except LookupError:  # a key that is not there, an index past the end
            return None
        except Exception as error:  # whatever the engine raises is the expression's failure
            if self._fails_on_null(given):
                return None
            raise ExpressionError(f"{_shown(self.source)} failed: {_reason(error)}") from error

    def holds(self, event: Mapping[str, Any]) -> bool:
        """Whether the expression is true; a missing field makes it false.

        Raises ExpressionError when it fails, or gives something else than a boolean.
        """
        return self.holds_in({"event": event})

    def holds_in(self, scope: Mapping[str, Mapping[str, Any]]) -> bool:
        """As `holds`, for all the names that the expression was compiled over."""
        value = self.evaluate_in(scope)
        if value is None:
            return False
        if isinstance(value, bool):
            return value
        raise ExpressionError(
            f"{_shown(self.source)} gave {value!r:.100}; a predicate gives true or false"
        )

    def _needed(self, name: str, value: Mapping[str, Any]) -> dict[str, Any]:
        if (name,) in self._paths:
            return dict(value)
        return _parts(value, [path[1:] for path in self._paths if path[0] == name])

    def _fails_on_null(self, given: Mapping[str, Any]) -> bool:
        """Whether a null is what the evaluation stumbled on.

        The engine has one error type for `null.x` and for `1 + "a"`. Without its nulls the same
        event gives a missing key for the first, and for the second the same error again.
        """
        try:
            self._program.execute(_without_nulls(given))
        except LookupError:
            return True
        except Exception:  # noqa: BLE001 - the first error is the one that is reported
            return False
        return False


class JmesExpression:
    """A compiled JMESPath expression. Make it with `compile_jmespath`."""

    def __init__(self, source: str, parsed: ParsedResult, paths: Sequence[Path]) -> None:
        self.source = source
        self._parsed = parsed
        self.headers = headers_named(paths)

    def evaluate(self, scope: Mapping[str, Any]) -> Any:
        """The value for `{"event": …}`, a missing field being None. Raises ExpressionError."""
        from jmespath.exceptions import JMESPathError

        try:
            return self._parsed.search(scope)
        except (JMESPathError, ArithmeticError, RecursionError, TypeError, ValueError) as error:
            # The built-in functions let errors of Python through, as `TypeError` from `sort`.
            raise ExpressionError(f"{_shown(self.source)} failed: {_reason(error)}") from error


def compile_cel(source: str, names: Sequence[str] = ("event",)) -> CelExpression:
    """Compile a CEL expression over `names`. Raises ExpressionError: what is wrong, and where."""
    _check_length(source, "CEL")
    import cel

    try:
        program = cel.compile(source)
    except ValueError as error:
        reason = _cel_syntax(error, source)
        raise ExpressionError(f"{_shown(source)} is not valid CEL, {reason}") from error
    known = set(names) | _CEL_TYPES | _CEL_NAMESPACES | cel_bound_names(source)
    unknown = [name for name in program.variables() if name not in known]
    _check_names(source, unknown, "CEL", names)
    return CelExpression(source, program, cel_paths(source))


def compile_jmespath(source: str) -> JmesExpression:
    """Compile a JMESPath expression over `{"event": …}`. Raises ExpressionError."""
    _check_length(source, "JMESPath")
    import jmespath
    from jmespath.exceptions import JMESPathError

    try:
        parsed = jmespath.compile(source)
        paths = jmespath_paths(parsed.parsed)
        negation = negates_too_little(parsed.parsed)
    except (JMESPathError, RecursionError, ValueError) as error:
        reason = _reason(error)
        raise ExpressionError(f"{_shown(source)} is not valid JMESPath: {reason}") from error
    if negation:
        raise ExpressionError(
            f"{_shown(source)} is always null: in JMESPath `!a.b` means `(!a).b`; write `!(a.b)`"
        )
    _check_names(source, [path[0] for path in paths if path[0] != "event"], "JMESPath")
    return JmesExpression(source, parsed, paths)


def is_true(value: Any) -> bool:
    """Truth as JMESPath has it: false, null and what is empty are false; the number 0 is true."""
    return not (value is None or value is False or value in ("", [], {}))


def _check_length(source: str, language: str) -> None:
    if not source.strip():
        raise ExpressionError(f"an empty text is not valid {language}")
    if len(source) > SOURCE_LIMIT:
        raise ExpressionError(
            f"{_shown(source)} has {len(source)} characters; at most {SOURCE_LIMIT} are allowed"
        )


def _check_names(
    source: str, unknown: Sequence[str], language: str, names: Sequence[str] = ("event",)
) -> None:
    if not unknown:
        return
    name = unknown[0]
    seen = "`event` only" if len(names) == 1 else ", ".join(f"`{each}`" for each in names)
    raise ExpressionError(
        f"{_shown(source)} reads `{name}`, which does not exist: a {language} expression sees "
        f"{seen}, as in `event.headers.tenant`"
    )


def _parts(event: Mapping[str, Any], paths: Sequence[Path]) -> dict[str, Any]:
    """A copy of `event` that holds what lies at `paths` and nothing else."""
    copy: dict[str, Any] = {}
    for path in paths:
        _copy_path(event, copy, path)
    return copy


def _copy_path(source: Mapping[str, Any], target: dict[str, Any], path: Path) -> None:
    for name in path[:-1]:
        below = source.get(name)
        if not isinstance(below, dict):
            break  # nothing to select from: what is there is copied, and fails as it would
        known = target.setdefault(name, {})
        if known is below:
            return  # an earlier path took the whole of it
        source, target = below, known
    else:
        name = path[-1]
    if name in source:
        target[name] = source[name]


def _without_nulls(value: Any) -> Any:
    """`value` without the nulls of its objects; in lists, where places count, `{}` for null."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [{} if item is None else _without_nulls(item) for item in value]
    return value


def _shown(source: str) -> str:
    line = " ".join(source.split())
    return f"`{line if len(line) <= _SHOWN_LIMIT else line[:_SHOWN_LIMIT] + '…'}`"


def _cel_syntax(error: ValueError, source: str) -> str:
    """What the parser says and where, without the source around it."""
    text = str(error).removeprefix(f"Failed to parse expression '{source}': ").split("\n|")[0]
    return f"at {text.removeprefix('ERROR: <input>:')}"[:200]


def _reason(error: Exception) -> str:
    """The message of a foreign error, on one line."""
    return " ".join(str(error).split()) or type(error).__name__
