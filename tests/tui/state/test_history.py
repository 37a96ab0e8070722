from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llmd_tui.state.history import History, shortened


def test_a_figure_that_comes_later_has_gaps_before() -> None:
    history = History()
    history.add({"a": 1.0})
    history.add({"a": 2.0, "b": 5.0})
    history.add({"b": 6.0})
    assert history.tail("a", 3) == [1.0, 2.0, None]
    assert history.tail("b", 4) == [None, None, 5.0, 6.0]
    assert history.last("a") is None
    assert history.last("b") == 6.0
    assert history.tail("unknown", 2) == [None, None]


def test_the_oldest_values_make_room() -> None:
    history = History(kept=3)
    for value in range(5):
        history.add({"a": float(value)})
    history.add({"a": 5.0, "late": 1.0})
    assert history.tail("a", 5) == [None, None, 3.0, 4.0, 5.0]
    assert history.tail("late", 3) == [None, None, 1.0]
    assert len(history) == 3


@given(st.lists(st.none() | st.floats(0, 1e6), max_size=60), st.integers(1, 80))
def test_shortened_values_fill_the_columns_and_stay_in_range(
    values: list[float | None], columns: int
) -> None:
    short = shortened(values, columns)
    assert len(short) == (columns if values else 0)
    known = [value for value in values if value is not None]
    assert all(min(known) - 1e-6 <= value <= max(known) + 1e-6 for value in short if value is not None)


def test_shortened_values_are_means_of_equal_parts() -> None:
    assert shortened([1.0, 3.0, None, 5.0, None, None], 3) == [2.0, 5.0, None]
