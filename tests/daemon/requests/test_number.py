from __future__ import annotations

from typing import Any

import pytest

from llmd.requests.fields import BadRequestError, RequestFields
from llmd.requests.number import Number


def read(number: Number, **body: Any) -> float | None:
    fields = RequestFields(body)
    value = number(fields, "name")
    assert fields.ignored == ()
    return value


def test_a_number_may_be_absent_text_or_at_its_limits() -> None:
    number = Number(0.0, 2.0)
    assert [read(number, **body) for body in ({}, {"name": None}, {"name": "0.5"})] == [None, None, 0.5]
    assert [read(number, name=value) for value in (0, 2)] == [0.0, 2.0]


@pytest.mark.parametrize(
    ("number", "value", "expected"),
    [
        (Number(0.0, 2.0), 2.1, "between 0.0 and 2.0"),
        (Number(0.0, 1.0, excludes_low=True), 0, "above 0 and at most 1"),
        (Number(0, 5, whole=True), 1.5, "an integer"),
        (Number(0.0, 1.0), "much", "a number"),
    ],
)
def test_other_values_are_refused_with_what_is_allowed(number: Number, value: object, expected: str) -> None:
    with pytest.raises(BadRequestError, match=f"name must be {expected}, not") as caught:
        read(number, name=value)
    assert caught.value.param == "name"


def test_a_value_may_mean_that_it_was_not_given() -> None:
    assert read(Number(-1, 9, whole=True, absent=-1), name=-1) is None


def test_small_values_may_count_as_the_floor() -> None:
    assert read(Number(-1, 9, whole=True, floor=0), name=-1) == 0
    assert read(Number(-1, 9, whole=True, floor=0), name=4) == 4


def test_the_own_name_wins_over_other_names_and_all_are_read() -> None:
    number = Number(0.0, 9.0, aliases=("other",))
    assert read(number, other=3) == 3
    assert read(number, other=3, name=4) == 4


@pytest.mark.parametrize(
    ("number", "words"),
    [(Number(-2.0, 2.0), "-2 to 2"), (Number(0.0, 100.0, excludes_low=True), "above 0 and at most 100")],
)
def test_the_range_can_be_said_in_words(number: Number, words: str) -> None:
    assert number.range == words
