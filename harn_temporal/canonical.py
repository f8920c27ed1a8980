"""JSON as the EventLog holds it: what a value must be, and the one way it is written.

`clean` makes a Python value into one that every reader of the log can decode, or says which part
of it cannot be; `encode` writes it as Harn does, byte for byte, since hashes are taken over it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, JsonValue

from harn_temporal.errors import NotJsonError

DEPTH_LIMIT = 120
"""Levels of nesting in anything that is written: Harn's JSON reader refuses more than 127."""

PAYLOAD_DEPTH_LIMIT = 100
"""Levels in what comes from outside, since records wrap it in levels of their own."""

INT_MIN = -(2**63)
INT_MAX = 2**64 - 1

_Path = tuple["_Path", str | int] | None

_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]")
_SHOWN_KEYS = 20
"""Steps of a path that an error names; of a longer one, its two ends."""
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_STRING_OR_SMALL_FLOAT = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?e-0\d')

_ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)


def clean(value: Any, *, depth_limit: int = DEPTH_LIMIT) -> JsonValue:
    """A copy of `value` that JSON can hold, equal to what reading it back would give.

    Lone surrogates become U+FFFD, in keys as well; integers outside 64 bits become strings, tuples
    lists, pydantic models their JSON form. Anything else that JSON lacks (NaN, infinities, dates,
    bytes, sets, keys that are no strings, more than `depth_limit` levels) raises NotJsonError.
    """
    return _clean(value, None, depth_limit)


def encode(value: JsonValue | Mapping[str, Any]) -> bytes:
    """Compact UTF-8 JSON of a clean value, keys sorted at every level, numbers as Harn has them."""
    try:
        text = _ENCODER.encode(value)
        if "e-0" in text:
            text = _STRING_OR_SMALL_FLOAT.sub(_as_harn_writes, text)
        return text.encode()
    except (TypeError, ValueError, RecursionError):
        # Not clean: this either repairs it, or raises the error that names the place.
        text = _ENCODER.encode(clean(value))
        return _STRING_OR_SMALL_FLOAT.sub(_as_harn_writes, text).encode()


def decode(raw: bytes | str) -> Any:
    """The value of a JSON text; NotJsonError, with line and column, where it is none."""
    try:
        return json.loads(raw, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise NotJsonError(f"not UTF-8: byte {error.start} cannot be read") from error
    except json.JSONDecodeError as error:
        raise NotJsonError(
            f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from error
    except ValueError as error:  # an integer of more digits than Python reads
        raise NotJsonError(f"not JSON that can be read: {error}") from error
    except RecursionError as error:
        raise NotJsonError("not JSON that can be read: it is nested too deeply") from error


def clean_text(text: str) -> str:
    """`text` with lone surrogates replaced, so that it can be written as UTF-8."""
    if text.isascii():
        return text
    return _SURROGATES.sub(_mend_surrogate, text)


def _clean(value: Any, path: _Path, depth: int) -> JsonValue:
    cleaner = _CLEANERS.get(type(value))
    if cleaner is None:
        cleaner = next((known for kind, known in _BY_BASE if isinstance(value, kind)), _refuse)
    return cleaner(value, path, depth)


def _clean_nothing(value: Any, _path: _Path, _depth: int) -> JsonValue:
    return value  # type: ignore[no-any-return]  # None, True or False


def _clean_str(value: str, _path: _Path, _depth: int) -> JsonValue:
    return clean_text(str.__str__(value))


def _clean_int(value: int, path: _Path, _depth: int) -> JsonValue:
    if INT_MIN <= value <= INT_MAX:
        return int(value)
    try:
        return str(int(value))
    except ValueError as error:  # Python writes no more than some thousands of digits
        raise NotJsonError(f"{_shown(path)} is an integer with too many digits") from error


def _clean_float(value: float, path: _Path, _depth: int) -> JsonValue:
    if math.isfinite(value):
        return float(value)
    raise NotJsonError(f"{_shown(path)} is {float(value)}, which JSON cannot hold")


def _clean_dict(value: dict[Any, Any], path: _Path, depth: int) -> JsonValue:
    inner = _inner_depth(path, depth)
    cleaned: dict[str, JsonValue] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise NotJsonError(
                f"{_shown(path)} has the key {_short_repr(key)}, a {type(key).__name__}; "
                "keys must be strings"
            )
        name = clean_text(str.__str__(key))
        if type(item) is str:  # most values are
            cleaned[name] = clean_text(item)
        else:
            cleaned[name] = _clean(item, (path, name), inner)
    return cleaned


def _clean_list(value: Any, path: _Path, depth: int) -> JsonValue:
    inner = _inner_depth(path, depth)
    return [_clean(item, (path, index), inner) for index, item in enumerate(value)]


def _clean_model(value: BaseModel, path: _Path, depth: int) -> JsonValue:
    try:
        dumped = value.model_dump(mode="json")
    except (ValueError, TypeError, RecursionError) as error:
        raise NotJsonError(
            f"{_shown(path)} is a {type(value).__name__} that has no JSON form: {error}"
        ) from error
    return _clean(dumped, path, depth)


def _refuse(value: Any, path: _Path, _depth: int) -> JsonValue:
    raise NotJsonError(
        f"{_shown(path)} is a {type(value).__name__}, which JSON cannot hold; "
        "use dicts, lists, strings, numbers, true, false and null"
    )


_Cleaner = Callable[[Any, _Path, int], JsonValue]

_CLEANERS: dict[type, _Cleaner] = {
    type(None): _clean_nothing,
    bool: _clean_nothing,
    str: _clean_str,
    int: _clean_int,
    float: _clean_float,
    dict: _clean_dict,
    list: _clean_list,
    tuple: _clean_list,
}

_BY_BASE: tuple[tuple[type, _Cleaner], ...] = (
    (BaseModel, _clean_model),
    (str, _clean_str),
    (int, _clean_int),
    (float, _clean_float),
    (dict, _clean_dict),
    (list, _clean_list),
    (tuple, _clean_list),
)
"""Subclasses are written as what they extend, as the standard library does."""


def _inner_depth(path: _Path, depth: int) -> int:
    if depth <= 0:
        raise NotJsonError(f"{_shown(path)} is nested too deeply")
    return depth - 1


def _shown(path: _Path) -> str:
    parts: list[str] = []
    while path is not None:
        path, key = path
        if isinstance(key, int):
            parts.append(f"[{key}]")
        elif _PLAIN_KEY.fullmatch(key):
            parts.append(f".{key}")
        else:
            parts.append(f"[{json.dumps(key, ensure_ascii=False)}]")
    if len(parts) > _SHOWN_KEYS:
        half = _SHOWN_KEYS // 2
        parts[half:-half] = ["…"]
    return "$" + "".join(reversed(parts))


def _short_repr(value: Any) -> str:
    limit = 60
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}…"


def _mend_surrogate(match: re.Match[str]) -> str:
    found = match.group()
    if len(found) == 1:
        return "\ufffd"
    return found.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _as_harn_writes(match: re.Match[str]) -> str:
    """Python pads exponents (`1e-07` for `1e-7`) and uses one for 0.00001, which Harn does not."""
    token = match.group()
    if token.startswith('"'):
        return token
    mantissa, _, exponent = token.partition("e-0")
    if exponent != "5":
        return f"{mantissa}e-{exponent}"
    sign = "-" if mantissa.startswith("-") else ""
    return f"{sign}0.0000{mantissa.lstrip('-').replace('.', '')}"


def _refuse_constant(name: str) -> Any:
    raise NotJsonError(f"not JSON: it holds {name}")
