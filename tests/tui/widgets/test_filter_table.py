from __future__ import annotations

from textual.widgets import Input

from llmd_tui.widgets.filter_table import FilterTable
from llmd_tui.widgets.table_rows import Column, Row, Sorting
from tests.tui.pilots import Shown, lines, press

COLUMNS = (Column("NAME"), Column("SIZE", 6, is_number=True))
ROWS = [Row(name, (name, str(size)), (name, size)) for name, size in (("bee", 2), ("ant", 10), ("cow", 1))]


class Watched(Shown):
    def on_filter_table_sorted(self, message: FilterTable.Sorted) -> None:
        self.seen.append(message.sorting)


def shown(app: Watched) -> list[str]:
    """Return the names that are shown, in order."""
    return [line[2:].split()[0] for line in lines(app) if line[2:5] in {"bee", "ant", "cow"}]


async def test_rows_are_filtered_while_one_types_and_all_shown_again() -> None:
    app = Watched(table := FilterTable(COLUMNS, "animals"))
    async with app.run_test(size=(40, 10)) as pilot:
        table.show(ROWS)
        table.focus_table()
        await press(pilot, "slash", "n")
        assert shown(app) == ["ant"]
        assert "1 of 3 animals" in lines(app)[-1]
        await press(pilot, "enter")
        assert table.table.has_focus
        assert table.selected == "ant"
        await press(pilot, "escape")
        assert shown(app) == ["bee", "ant", "cow"]
        assert lines(app)[-1].strip() == "3 animals"
        assert not table.query_one(Input).display


async def test_escape_in_the_field_goes_back_to_all_rows() -> None:
    app = Watched(table := FilterTable(COLUMNS, "animals"))
    async with app.run_test(size=(40, 10)) as pilot:
        table.show(ROWS)
        table.focus_table()
        await press(pilot, "slash", "x", "escape")
        assert shown(app) == ["bee", "ant", "cow"]
        assert table.table.has_focus


async def test_a_filter_holds_for_rows_that_come_later() -> None:
    app = Watched(table := FilterTable(COLUMNS, "animals"))
    async with app.run_test(size=(40, 10)) as pilot:
        table.show(ROWS[:1])
        table.focus_table()
        await press(pilot, "slash", "n", "enter")
        table.show(ROWS)
        await pilot.pause()
        assert shown(app) == ["ant"]


async def test_rows_are_sorted_by_keys_and_by_clicks_on_titles() -> None:
    app = Watched(table := FilterTable(COLUMNS, "animals"))
    async with app.run_test(size=(40, 10)) as pilot:
        table.show(ROWS)
        table.focus_table()
        await press(pilot, "s")
        assert shown(app) == ["ant", "bee", "cow"]
        assert lines(app)[0].strip().startswith("NAME ↑")
        assert lines(app)[-1].strip() == "3 animals, sorted by name"
        await press(pilot, "S")
        assert shown(app) == ["cow", "bee", "ant"]
        await pilot.click(table.table, offset=(37, 0))
        await pilot.pause()
        assert shown(app) == ["ant", "bee", "cow"]  # the largest first
        await pilot.click(table.table, offset=(37, 0))
        await pilot.pause()
        assert shown(app) == ["cow", "bee", "ant"]
        assert app.seen == [
            Sorting(0),
            Sorting(0, is_reversed=True),
            Sorting(1, is_reversed=True),
            Sorting(1),
        ]


async def test_the_sorting_of_the_last_time_holds() -> None:
    app = Watched(table := FilterTable(COLUMNS, "animals", sorting=Sorting(0)))
    async with app.run_test(size=(40, 10)) as pilot:
        table.show(ROWS)
        await pilot.pause()
        assert shown(app) == ["ant", "bee", "cow"]
