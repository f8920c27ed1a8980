import pytest
from hypothesis import given
from hypothesis import strategies as st

from harn_temporal.durations import ALL_UNITS, GATE_UNITS, format_duration, parse_duration
from harn_temporal.errors import UsageError


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("0s", 0),
        ("250ms", 250),
        ("30s", 30_000),
        ("10m", 600_000),
        ("2h", 7_200_000),
        ("1d", 86_400_000),
        ("1w", 604_800_000),
        (" 5 m ", 300_000),
        ("36500d", 3_153_600_000_000),
    ],
)
def test_durations_are_an_integer_and_a_unit(text, ms):
    assert parse_duration(text) == ms


@pytest.mark.parametrize(
    "text", ["", "5", "m", "1.5s", "-5s", "5 minutes", "5M", "1h30m", "٣s", "5\ns x", "36501d"]
)
def test_anything_else_is_refused(text):
    with pytest.raises(UsageError) as caught:
        parse_duration(text)
    assert repr(text) in str(caught.value)


def test_the_message_says_which_units_are_allowed():
    with pytest.raises(UsageError) as caught:
        parse_duration("500ms", GATE_UNITS)
    assert str(caught.value) == (
        "'500ms' is not a duration; write an integer with s, m, h, d or w, like 10m"
    )


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 s"),
        (1, "1 ms"),
        (999, "999 ms"),
        (1_000, "1 s"),
        (1_500, "1.5 s"),
        (59_999, "59.999 s"),
        (60_000, "1 m"),
        (90_000, "1 m 30 s"),
        (300_000, "5 m"),
        (36_000_000, "10 h"),
        (36_061_000, "10 h 1 m"),
        (86_400_000, "1 d"),
        (86_460_000, "1 d"),
        (-5_000, "-5 s"),
    ],
)
def test_durations_for_people(ms, text):
    assert format_duration(ms) == text


@given(st.integers(1, 1_000), st.sampled_from(ALL_UNITS))
def test_a_duration_in_one_unit_reads_back(count, unit):
    ms = parse_duration(f"{count}{unit}")
    shown = format_duration(ms)
    parts = shown.split()
    assert len(parts) in (2, 4)
    if len(parts) == 2 and "." not in shown:
        assert parse_duration(shown) == ms
