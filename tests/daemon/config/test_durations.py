from __future__ import annotations

import pytest

from llmd.config.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (300.0, "5m"),
        (5400.0, "1h30m"),
        (90.0, "1m30s"),
        (3600.0, "1h"),
        (0.25, "0.25s"),
        (0.0, "0"),
        (-1.0, "-1"),
    ],
)
def test_writes_durations_as_they_are_read(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("300", 300),
        ("1.5", 1.5),
        ("-1", -1),
        ("10m", 600),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("-2s", -2),
        ("250ms", 0.25),
        (" 90s ", 90),
        (".5s", 0.5),
        ("+1m", 60),
        ("2us", 2e-6),
        ("2µs", 2e-6),
        ("0", 0),
    ],
)
def test_reads_seconds_and_the_durations_of_go(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "m", "1h 30m", "10x", "1e3", "inf", "nan", "--1", "5min", "٣s"])
def test_refuses_other_forms(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_duration(text)
