"""Disturbed rounds are repeated with the same number and counted, up to a limit."""

from __future__ import annotations

import os

import pytest

from bench.quiet import (
    MOST_THROWN_OUT,
    SHARE_OF_OTHERS,
    TICKS_OF_OTHERS,
    DisturbedError,
    QuietRounds,
    is_quiet,
)
from tests.bench.watches import Watch, scripted

MUCH, LITTLE = 2 * SHARE_OF_OTHERS, SHARE_OF_OTHERS / 2


def test_a_round_in_which_others_worked_is_repeated_with_its_number() -> None:
    quiet = QuietRounds(scripted(LITTLE, MUCH, MUCH, 0.0))
    measured: list[int] = []

    def measure(number: int) -> int:
        measured.append(number)
        return len(measured)

    assert quiet.take("decode", measure, 2) == [2, 5]
    assert measured == [0, 1, 2, 2, 2]
    assert quiet.tally.counted == [LITTLE, 0.0]
    assert quiet.tally.thrown_out == [MUCH, MUCH]


def test_the_round_that_warms_up_may_be_left_out() -> None:
    measured: list[int] = []
    QuietRounds(Watch).take("prefill", measured.append, 2, warm_up=False)
    assert measured == [1, 2]


def test_a_machine_that_stays_busy_ends_the_measurement_with_what_others_had() -> None:
    quiet = QuietRounds(scripted(0.0, *[0.25] * MOST_THROWN_OUT, 0.5))
    with pytest.raises(DisturbedError, match=r"decode: .* 25 to 50 % .* in 11 of 12 rounds"):
        quiet.take("decode", lambda number: number, 2)


def test_each_figure_may_repeat_as_many_rounds_and_the_tally_has_all() -> None:
    quiet = QuietRounds(scripted(*2 * [*[MUCH] * MOST_THROWN_OUT, 0.0]))
    for title in ("prefill", "decode"):
        quiet.take(title, lambda number: number, 1)
    assert (len(quiet.tally.counted), len(quiet.tally.thrown_out)) == (2, 2 * MOST_THROWN_OUT)


def test_what_cannot_be_told_from_rounding_does_not_count_against_a_short_round() -> None:
    ticks = TICKS_OF_OTHERS / os.sysconf("SC_CLK_TCK")
    assert is_quiet(SHARE_OF_OTHERS, 100.0)
    assert not is_quiet(1.01 * SHARE_OF_OTHERS, 100.0)
    short_s = ticks / SHARE_OF_OTHERS / 2
    assert is_quiet(0.99 * ticks / short_s, short_s)
    assert not is_quiet(1.01 * ticks / short_s, short_s)


def test_the_tally_is_a_sentence() -> None:
    quiet = QuietRounds(scripted(0.01, MUCH, 0.03))
    quiet.take("decode", lambda number: number, 2)
    text = str(quiet.tally)
    assert text.startswith("1 of 3 rounds were thrown out because other processes took processor time")
    assert "2.0 % on average" in text
