from __future__ import annotations

import pytest

from llmd_tui.widgets.table_rows import Column, Row, Sorting, arranged, by_column, fitting, following

COLUMNS = (Column("NAME"), Column("STATE", 6), Column("SIZE", 6, is_number=True), Column("SOURCE", 0, 40))
ROWS = (
    Row("b", ("Beta", "ok", "10", "hub"), ("beta", 1, 10, "hub")),
    Row("a", ("alpha", "failed", "-", "disk"), ("alpha", 0, None, "disk")),
    Row("c", ("Gamma", "ok", "9", "hub"), ("gamma", 1, 9, "hub")),
)


def keys(rows: list[Row]) -> str:
    return "".join(row.key for row in rows)


@pytest.mark.parametrize(
    ("wanted", "found"), [("", "bac"), ("HUB", "bc"), ("ok hub", "bc"), ("ok disk", ""), ("10", "")]
)
def test_rows_need_each_word_in_any_case_and_not_in_numbers(wanted: str, found: str) -> None:
    assert keys(arranged(ROWS, COLUMNS, wanted, Sorting())) == found


@pytest.mark.parametrize(
    ("sorting", "found"),
    [
        (Sorting(), "bac"),
        (Sorting(None, is_reversed=True), "cab"),
        (Sorting(0), "abc"),
        (Sorting(0, is_reversed=True), "cba"),
        (Sorting(2), "cba"),
        (Sorting(2, is_reversed=True), "bca"),
    ],
)
def test_rows_are_sorted_by_value_with_unknown_ones_last(sorting: Sorting, found: str) -> None:
    assert keys(arranged(ROWS, COLUMNS, "", sorting)) == found


def test_rows_without_an_order_are_sorted_by_their_cells() -> None:
    rows = [Row(key, (key,)) for key in ("b", "C", "a")]
    assert keys(arranged(rows, (Column("X"),), "", Sorting(0))) == "abC"


def test_each_shown_column_has_its_turn_and_numbers_begin_with_the_largest() -> None:
    turns = [Sorting()]
    for _ in range(4):
        turns.append(following(turns[-1], COLUMNS, (0, 2, 3)))
    assert turns == [Sorting(), Sorting(0), Sorting(2, is_reversed=True), Sorting(3), Sorting()]
    assert by_column(COLUMNS, 1) == Sorting(1)


def test_columns_are_left_out_on_narrow_terminals_and_share_the_rest() -> None:
    assert fitting(COLUMNS, 30) == {0: 16, 1: 6, 2: 6}
    assert fitting(COLUMNS, 50) == {0: 18, 1: 6, 2: 6, 3: 17}
    assert fitting(COLUMNS, 5)[0] == 8  # a name stays readable, whatever is cut off at the right
