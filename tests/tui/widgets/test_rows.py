from __future__ import annotations

from textual.app import App, ComposeResult

from llmd_tui.widgets.rows import Rows


class Table(App[None]):
    def compose(self) -> ComposeResult:
        yield Rows([("NAME", 10), ("VALUE", 10)])


async def test_the_cursor_stays_on_its_row() -> None:
    async with Table().run_test() as pilot:
        rows = pilot.app.query_one(Rows)
        rows.show({"a": ("a", "1"), "b": ("b", "2"), "c": ("c", "3")})
        rows.move_cursor(row=1)
        rows.show({"c": ("c", "3"), "a": ("a", "1"), "b": ("b", "2"), "d": ("d", "4")})
        assert rows.selected == "b"
        rows.show({"a": ("a", "9")})
        assert rows.selected == "a"
        assert rows.get_cell("a", "VALUE") == "9"


async def test_cells_change_in_place() -> None:
    async with Table().run_test() as pilot:
        rows = pilot.app.query_one(Rows)
        assert rows.selected is None
        rows.show({"a": ("a", "1"), "b": ("b", "2")})
        rows.show({"a": ("a", "5"), "b": ("b", "2")})
        assert rows.get_row("a") == ["a", "5"]


async def test_other_columns_begin_without_rows() -> None:
    async with Table().run_test() as pilot:
        rows = pilot.app.query_one(Rows)
        rows.show({"a": ("a", "1")})
        rows.set_columns([("ONLY", 5)])
        assert rows.row_count == 0
        rows.show({"a": ("x",)})
        assert rows.get_row("a") == ["x"]
