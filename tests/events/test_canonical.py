import contextlib
import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from harn_temporal.canonical import DEPTH_LIMIT, clean, decode, encode
from harn_temporal.errors import NotJsonError

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=10**30, max_value=10**31)
    | st.floats()
    | st.text(st.characters())
    | st.text("\ud800\udc00\udbff\udfff\x00a")
    | st.binary(max_size=4)
    | st.datetimes(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.sets(st.integers(), max_size=2)
        | st.dictionaries(st.text(st.characters()) | st.integers(), inner, max_size=4)
    ),
    max_leaves=20,
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=20,
)


def nested(levels):
    value = 0
    for _ in range(levels):
        value = [value]
    return value


def refusal(value):
    with pytest.raises(NotJsonError) as caught:
        clean(value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (1e16, "1e+16"),
        (1.5e16, "1.5e+16"),
        (1e15, "1000000000000000.0"),
        (9999999999999998.0, "9999999999999998.0"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (0.0001, "0.0001"),
        (0.00001, "0.00001"),
        (-0.00001, "-0.00001"),
        (1.5e-5, "0.000015"),
        (-1.2345678901234568e-5, "-0.000012345678901234568"),
        (9.999999999999999e-6, "9.999999999999999e-6"),
        (1e-6, "1e-6"),
        (-2.5e-6, "-2.5e-6"),
        (1e-7, "1e-7"),
        (1e-9, "1e-9"),
        (1e-10, "1e-10"),
        (5e-324, "5e-324"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.1, "0.1"),
        (2**64 - 1, "18446744073709551615"),
        (-(2**63), "-9223372036854775808"),
    ],
)
def test_numbers_are_written_as_harn_writes_them(number, written):
    assert encode(number) == written.encode()
    assert encode({"n": [number]}) == f'{{"n":[{written}]}}'.encode()
    assert decode(encode(number)) == number


def test_text_that_looks_like_a_number_is_left_alone():
    value = {"1e-05": '1e-05 \\" "2e-06" \\', "x": 1e-5, "y": "\\"}
    assert encode(value) == rb'{"1e-05":"1e-05 \\\" \"2e-06\" \\","x":0.00001,"y":"\\"}'
    assert decode(encode(value)) == value


def test_keys_are_sorted_at_every_level_and_text_is_utf_8():
    value = {"b": {"z": 1, "a": 2}, "a": [{"d": 1, "c": 2}], "é": "\U0001f600", "Z": None}
    assert encode(value).decode() == (
        '{"Z":null,"a":[{"c":2,"d":1}],"b":{"a":2,"z":1},"é":"\U0001f600"}'
    )


def test_keys_are_sorted_as_harn_sorts_bytes():
    keys = ["\U00010000", "\uffff", "\ue000", "z", "A", ""]
    assert list(json.loads(encode(dict.fromkeys(keys)))) == sorted(keys, key=str.encode)


def test_only_what_must_be_escaped_is():
    assert encode('\x00\x1f\b\f\n\r\t"\\/\x7f\u2028é') == (
        '"\\u0000\\u001f\\b\\f\\n\\r\\t\\"\\\\/\x7f\u2028é"'.encode()
    )


@given(json_values)
def test_clean_values_survive_writing_and_reading(value):
    cleaned = clean(value)
    assert cleaned == value
    assert repr(clean(decode(encode(cleaned)))) == repr(_sorted(cleaned))


def _sorted(value):
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


@given(anything)
def test_clean_gives_what_can_be_written_or_says_why_not(value):
    try:
        cleaned = clean(value)
    except NotJsonError as error:
        assert str(error).startswith("$")  # noqa: PT017 - either outcome is right
        with contextlib.suppress(NotJsonError):  # and nothing else
            encode(value)
        return
    assert repr(clean(cleaned)) == repr(cleaned)
    assert repr(decode(encode(cleaned))) == repr(_sorted(cleaned))


@given(st.binary(max_size=40) | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_decode_gives_a_value_or_says_why_not(raw):
    try:
        value = decode(raw)
    except NotJsonError as error:
        assert str(error).startswith("not ")  # noqa: PT017 - either outcome is right
    else:
        assert isinstance(value, dict | list | str | int | float | bool | None)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_reads_back_as_itself(number):
    text = encode(number).decode()
    assert float(text).hex() == number.hex()
    exponent = text.partition("e")[2]
    assert not exponent or abs(int(exponent)) >= 6
    assert exponent.lstrip("+-")[:1] != "0"


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("\ud800", "\ufffd"),
        ("a\udfffb", "a\ufffdb"),
        ("\udc00\ud800", "\ufffd\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\x00", "\x00"),
    ],
)
def test_lone_surrogates_are_replaced_everywhere(text, cleaned):
    assert clean({text: [text]}) == {cleaned: [cleaned]}
    assert encode({text: [text]}) == encode({cleaned: [cleaned]})


@pytest.mark.parametrize(
    ("number", "cleaned"),
    [
        (2**64 - 1, 2**64 - 1),
        (2**64, "18446744073709551616"),
        (-(2**63), -(2**63)),
        (-(2**63) - 1, "-9223372036854775809"),
        (10**100, "1" + "0" * 100),
    ],
)
def test_integers_outside_64_bits_become_strings(number, cleaned):
    assert clean([number]) == [cleaned]


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Pair(NamedTuple):
    left: int
    right: int


class Model(BaseModel):
    when: datetime
    big: int = 2**70


def test_what_is_like_json_is_made_json():
    when = datetime(2026, 1, 31, tzinfo=UTC)
    value = [Colour.RED, Level.HIGH, Pair(1, 2), (1, (2,)), True, Model(when=when)]
    cleaned = clean(value)
    assert cleaned == [
        "red",
        3,
        [1, 2],
        [1, [2]],
        True,
        {"when": "2026-01-31T00:00:00Z", "big": str(2**70)},
    ]
    assert [type(item) for item in cleaned] == [str, int, list, list, bool, dict]


@dataclass
class Row:
    n: int


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.nan, "$ is nan, which JSON cannot hold"),
        ({"a": [0, 0, 0, {"b": math.inf}]}, "$.a[3].b is inf, which JSON cannot hold"),
        ({"a b": -math.inf}, '$["a b"] is -inf, which JSON cannot hold'),
        ([b"x"], "$[0] is a bytes, which"),
        ({"s": {1}}, "$.s is a set, which"),
        ({"d": datetime(2026, 1, 1, tzinfo=UTC)}, "$.d is a datetime, which"),
        ([Row(1)], "$[0] is a Row, which"),
        ([Decimal(1)], "$[0] is a Decimal, which"),
        ({"f": print}, "$.f is a builtin_function_or_method, which"),
        ({"a": {1: 2}}, "$.a has the key 1, a int; keys must be strings"),
        ({None: 2}, "$ has the key None, a NoneType"),
        ([10**5000], "$[0] is an integer with too many digits"),
        ([Model.model_construct(when=object())], "$[0] is a Model that has no JSON form"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_place(value, message):
    assert refusal(value).startswith(message)


def test_nesting_has_a_limit_and_a_cycle_meets_it():
    assert clean(nested(DEPTH_LIMIT)) == nested(DEPTH_LIMIT)
    shown = "[0]" * 10
    assert refusal(nested(DEPTH_LIMIT + 1)) == f"${shown}…{shown} is nested too deeply"
    assert refusal(nested(100_000)).endswith("is nested too deeply")
    cycle = {}
    cycle["again"] = [cycle]
    assert refusal(cycle).startswith("$.again[0].again[0]")
    with pytest.raises(NotJsonError):
        encode(cycle)


def test_harn_reads_127_levels_and_records_wrap_what_comes_from_outside():
    assert DEPTH_LIMIT < 127


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"a":\n 1,}', "at line 2, column 4"),
        (b"\xff", "not UTF-8: byte 0 cannot be read"),
        (b'[NaN, "x"]', "it holds NaN"),
        (b"[-Infinity]", "it holds -Infinity"),
        (b"[" * 100_000, "nested too deeply"),
        (b"9" * 5_000, "not JSON that can be read"),
        (b"", "at line 1, column 1"),
    ],
)
def test_what_is_not_json_is_refused_with_the_reason(raw, message):
    with pytest.raises(NotJsonError) as caught:
        decode(raw)
    assert message in str(caught.value)
