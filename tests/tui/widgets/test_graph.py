from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llmd_tui.widgets.graph import ASCII, BLOCKS, columns_of


def test_columns_are_as_high_as_their_values() -> None:
    assert columns_of([0.0, 4.0, 8.0, None], 8.0, 1) == ["▁▄█ "]
    assert columns_of([0.0, 8.0, 16.0, 12.0], 16.0, 2) == ["  █▄", "▁███"]
    assert columns_of([0.0, 8.0], 8.0, 1, ASCII) == [".@"]


def test_values_beyond_the_top_are_cut_and_no_top_draws_a_line() -> None:
    assert columns_of([20.0], 10.0, 2) == ["█", "█"]
    assert columns_of([0.0, 0.0], 0.0, 1) == ["▁▁"]


@given(st.lists(st.none() | st.floats(0, 1e9), max_size=30), st.integers(1, 5))
def test_every_row_has_a_mark_for_every_value(values: list[float | None], rows: int) -> None:
    lines = columns_of(values, max((value or 0.0 for value in values), default=0.0), rows)
    assert [len(line) for line in lines] == [len(values)] * rows
    assert set("".join(lines)) <= set(BLOCKS)
