from __future__ import annotations

from rich.text import Text
from textual.events import MouseScrollDown
from textual.strip import Strip

from llmd_tui.widgets.table import Table
from llmd_tui.widgets.table_rows import Column, Row, Sorting
from tests.tui.pilots import Shown, lines

COLUMNS = (Column("NAME"), Column("SIZE", 6, is_number=True))


class Watched(Shown):
    def on_table_moved(self, message: Table.Moved) -> None:
        self.seen.append(message.key)

    def on_table_chosen(self, message: Table.Chosen) -> None:
        self.seen.append(("chosen", message.key))

    def on_table_title_clicked(self, message: Table.TitleClicked) -> None:
        self.seen.append(("title", message.column))


def rows(*names: str) -> list[Row]:
    return [Row(name, (name, "1")) for name in names]


def numbered(count: int) -> list[Row]:
    return rows(*(f"m{number}" for number in range(count)))


def watched() -> tuple[Watched, Table]:
    table = Table(COLUMNS)
    return Watched(table), table


async def test_titles_cells_and_cursor_are_drawn_in_their_columns() -> None:
    app, table = watched()
    async with app.run_test(size=(20, 5)) as pilot:
        table.show(
            [Row("a", ("a\x1bb\nc", "12")), Row("long", (Text("name " * 9), "1"))],
            Sorting(1, is_reversed=True),
        )
        await pilot.pause()
        assert lines(app) == [
            "  NAME        SIZE ↓",
            "› a b c           12",
            "  name name …      1",
            "",
            "",
        ]


async def test_the_first_rows_stay_in_view_in_a_table_of_another_height() -> None:
    app, table = watched()
    async with app.run_test(size=(30, 6)) as pilot:
        table.show(numbered(4), Sorting())
        await pilot.pause()
        table.show([*rows(*"abcdefgh"), *numbered(4)], Sorting())  # the row under the cursor goes out of view
        await pilot.pause()
        await pilot.resize_terminal(30, 5)
        await pilot.pause()
        assert "a" in lines(app)[1]


async def test_the_first_rows_stay_in_view_when_others_come() -> None:
    app, table = watched()
    async with app.run_test(size=(30, 6)) as pilot:
        table.show(numbered(4), Sorting())
        await pilot.pause()
        table.show([*rows(*"abcdefgh"), *numbered(4)], Sorting())
        await pilot.pause()
        assert [line.split()[0] for line in lines(app)[1:]] == ["a", "b", "c", "d", "e"]
        assert table.selected == "m0"


async def test_only_rows_that_have_changed_are_drawn_again() -> None:
    drawn: list[int] = []

    class Counting(Table):
        def render_line(self, y: int) -> Strip:
            drawn.append(y)
            return super().render_line(y)

    table = Counting(COLUMNS)
    app = Shown(table)
    async with app.run_test(size=(30, 6)) as pilot:
        before = numbered(100)
        for count in (99, 100):  # the first time, there is no scroll bar yet
            table.show(before[:count], Sorting())
            table.move_to(50)
            await pilot.pause()
        drawn.clear()
        table.show(
            [one._replace(cells=(one.key, "2")) if one.key in {"m1", "m47"} else one for one in before],
            Sorting(),
        )
        await pilot.pause()
        assert set(drawn) == {2}
        assert lines(app)[2] == "  m47                      2"
        table.show(before[1:], Sorting())
        await pilot.pause()
        assert set(drawn) == set(range(6))


async def test_the_cursor_goes_to_a_row_that_is_shown() -> None:
    app, table = watched()
    async with app.run_test(size=(30, 6)):
        table.show(numbered(100), Sorting())
        table.go_to("m50")
        assert table.selected == "m50"
        table.go_to("gone")
        assert table.selected == "m50"


async def test_the_cursor_moves_by_keys_and_stops_at_the_ends() -> None:
    app, table = watched()
    async with app.run_test(size=(30, 6)) as pilot:
        table.show(numbered(100), Sorting())
        table.focus()
        await pilot.press("down", "j", "up")
        assert table.selected == "m1"
        await pilot.press("pagedown")
        assert table.selected == "m5"
        await pilot.press("end")
        assert table.selected == "m99"
        assert lines(app)[-1].startswith("› m99")
        await pilot.press("down", "home", "k")
        assert table.selected == "m0"
        assert [line[:28] for line in lines(app)[:2]] == [
            "  NAME                  SIZE",
            "› m0                       1",
        ]


async def test_the_cursor_stays_on_its_row_and_in_its_line_when_rows_change() -> None:
    app, table = watched()
    async with app.run_test(size=(30, 6)) as pilot:
        table.show(numbered(100), Sorting())
        table.move_to(50)
        await pilot.pause()
        line = [shown[:1] for shown in lines(app)].index("›")
        table.show(rows("new", "newer", *(f"m{number}" for number in range(100))), Sorting())
        await pilot.pause()
        assert table.selected == "m50"
        assert lines(app)[line].startswith("› m50")


async def test_a_row_that_goes_leaves_the_cursor_in_its_place() -> None:
    app, table = watched()
    async with app.run_test(size=(30, 6)) as pilot:
        table.show(rows("a", "b", "c"), Sorting())
        table.move_to(2)
        table.show(rows("a", "b"), Sorting())
        await pilot.pause()
        assert app.seen[-1] == "b"
        table.show([], Sorting())
        await pilot.pause()
        assert app.seen == ["a", "c", "b", None]


async def test_rows_and_titles_can_be_clicked() -> None:
    app, table = watched()
    async with app.run_test(size=(30, 6)) as pilot:
        table.show(rows("a", "b", "c"), Sorting())
        await pilot.pause()
        await pilot.click(table, offset=(4, 2))
        await pilot.click(table, offset=(4, 3), times=2)
        await pilot.click(table, offset=(4, 5))  # below the rows
        await pilot.click(table, offset=(25, 0))
        assert app.seen == ["a", "b", "c", ("chosen", "c"), ("title", 1)]


async def test_the_wheel_scrolls_without_moving_the_cursor() -> None:
    app, table = watched()
    async with app.run_test(size=(30, 6)) as pilot:
        table.show(numbered(50), Sorting())
        await pilot.pause()
        await pilot._post_mouse_events([MouseScrollDown], table, offset=(3, 3))
        await pilot.pause()
        assert table.selected == "m0"
        assert lines(app)[1].startswith("  m2")


class CountingTable(Table):
    """Counts the lines that it draws."""

    drawn = 0

    def render_line(self, y: int) -> Strip:
        self.drawn += 1
        return super().render_line(y)


async def test_of_ten_thousand_rows_only_the_visible_ones_are_drawn() -> None:
    table = CountingTable(COLUMNS)
    async with Shown(table).run_test(size=(80, 24)) as pilot:
        table.show(numbered(10_000), Sorting())
        await pilot.pause()
        before = table.drawn
        table.show(numbered(10_001), Sorting())
        await pilot.pause()
        assert 24 <= table.drawn - before <= 3 * 24


async def test_a_table_without_rows_says_why() -> None:
    app, table = watched()
    async with app.run_test(size=(20, 4)) as pilot:
        table.show((), Sorting(), empty="Nothing yet.")
        await pilot.pause()
        assert lines(app)[1:3] == ["  Nothing yet.", ""]
        table.show(rows("a"), Sorting(), empty="Nothing yet.")
        await pilot.pause()
        assert lines(app)[1].startswith("› a")
