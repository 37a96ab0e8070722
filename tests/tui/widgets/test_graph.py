from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from textual.strip import Strip

from llmd_tui.widgets.graph import ASCII, BLOCKS, Graph, columns_of
from tests.tui.pilots import Shown, text


def test_columns_are_as_high_as_their_values() -> None:
    assert columns_of([0.0, 4.0, 8.0, None], 8.0, 1) == ["▁▄█ "]
    assert columns_of([0.0, 8.0, 16.0, 12.0], 16.0, 2) == ["  █▄", "▁███"]
    assert columns_of([0.0, 8.0], 8.0, 1, ASCII) == [".@"]


def test_values_beyond_the_top_are_cut_and_no_top_draws_a_line() -> None:
    assert columns_of([20.0], 10.0, 2) == ["█", "█"]
    assert columns_of([0.0, 0.0], 0.0, 1) == ["▁▁"]


async def test_only_lines_that_have_changed_are_drawn_again() -> None:
    drawn: set[int] = set()

    class Counting(Graph):
        def render_line(self, y: int) -> Strip:
            drawn.add(y)
            return super().render_line(y)

    app = Shown(graph := Counting("output", lambda value: f"{value:.0f} tok/s", top=8.0))
    async with app.run_test(size=(18, 3)) as pilot:
        graph.show([4.0] * 16)
        await pilot.pause()
        assert text(app) == " output 4 tok/s\n ████████████████"
        drawn.clear()
        graph.show([8.0] + [4.0] * 15)
        await pilot.pause()
        assert drawn == {1}
        assert text(app) == " output 4 tok/s\n █\n ████████████████"
        await pilot.resize_terminal(12, 3)
        await pilot.pause()
        assert text(app).splitlines()[0] == " output 4 …"


async def test_the_largest_value_is_left_out_where_it_does_not_fit() -> None:
    app = Shown(graph := Graph("output", lambda value: f"{value:.0f} tok/s"))
    async with app.run_test(size=(40, 3)) as pilot:
        graph.show([8.0, 4.0])
        for width, title in ((40, " output 4 tok/s  most 8 tok/s"), (28, " output 4 tok/s")):
            await pilot.resize_terminal(width, 3)
            await pilot.pause()
            assert text(app).splitlines()[0] == title


async def test_the_same_values_are_drawn_again_with_other_marks() -> None:
    app = Shown(graph := Graph("output", lambda value: f"{value:.0f}", top=8.0))
    async with app.run_test(size=(18, 3)) as pilot:
        for is_ascii, mark in ((False, "█"), (True, "@")):
            app.set_class(is_ascii, "-ascii")
            graph.show([8.0] * 16)
            await pilot.pause()
            assert text(app).splitlines()[1:] == [f" {mark * 16}"] * 2


@given(st.lists(st.none() | st.floats(0, 1e9), max_size=30), st.integers(1, 5))
def test_every_row_has_a_mark_for_every_value(values: list[float | None], rows: int) -> None:
    lines = columns_of(values, max((value or 0.0 for value in values), default=0.0), rows)
    assert [len(line) for line in lines] == [len(values)] * rows
    assert set("".join(lines)) <= set(BLOCKS)
