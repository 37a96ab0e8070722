"""Listings for people, for pipes and for programs."""

from __future__ import annotations

import json

import click
import pytest
from msgspec import Struct

from llmd.api.byte_size import format_bytes
from llmd.cli.output import Column, View, aligned, show


class Model(Struct, frozen=True):
    name: str
    size_bytes: int


BROKEN = Model("it\nraised\t\x1b[31mred\r", 1)
ROWS = (Model("small", 2 << 30), Model("a-very-long-name", 512), Model("none", 0))
COLUMNS = (
    Column[Model]("NAME", lambda model: model.name),
    Column[Model](
        "SIZE",
        lambda model: format_bytes(model.size_bytes) if model.size_bytes else "",
        lambda model: model.size_bytes,
    ),
)


def shown(view: View, capsys: pytest.CaptureFixture[str]) -> list[str]:
    show(view, "models", ROWS, COLUMNS)
    return capsys.readouterr().out.splitlines()


def test_columns_are_aligned_and_nothing_is_cut_off(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(View(), capsys) == [
        "NAME              SIZE",
        "small             2.0 GiB",
        "a-very-long-name  512 B",
        "none              –",
    ]


def test_plain_columns_are_separated_by_tabs(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(View(plain=True), capsys)[1] == "small\t2.0 GiB"


@pytest.mark.parametrize("view", [View(), View(plain=True)])
def test_a_text_of_several_lines_stays_one_cell(view: View, capsys: pytest.CaptureFixture[str]) -> None:
    show(view, "models", [BROKEN], COLUMNS)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == ["it raised [31mred\t1 B" if view.plain else "it raised [31mred  1 B"]


def test_json_is_one_object_with_its_schema_and_sizes_in_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads("\n".join(shown(View(as_json=True), capsys)))
    assert document["schema"] == 1
    assert document["models"][0] == {"name": "small", "size_bytes": 2 << 30}


def test_columns_are_chosen_and_ordered(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(View(columns="size, NAME", plain=True), capsys)[:2] == ["SIZE\tNAME", "2.0 GiB\tsmall"]


def test_rows_are_sorted_by_value_and_not_by_text(capsys: pytest.CaptureFixture[str]) -> None:
    names = [line.split("\t")[0] for line in shown(View(sort="size", plain=True), capsys)]
    assert names == ["NAME", "none", "a-very-long-name", "small"]
    assert shown(View(sort="name", plain=True), capsys)[1].startswith("a-very-long-name")


def test_a_column_is_known_by_its_old_title(capsys: pytest.CaptureFixture[str]) -> None:
    columns = (COLUMNS[0], Column[Model]("FIX", lambda _: "update it", old_title="MEND"))
    show(View(columns="mend,name", sort="mend", plain=True), "models", ROWS[:1], columns)
    assert capsys.readouterr().out.splitlines() == ["FIX\tNAME", "update it\tsmall"]


def test_the_object_of_a_row_can_be_changed(capsys: pytest.CaptureFixture[str]) -> None:
    show(View(as_json=True), "models", ROWS[:1], COLUMNS, lambda row: row | {"old": row["name"]})
    assert json.loads(capsys.readouterr().out)["models"] == [
        {"name": "small", "size_bytes": 2 << 30, "old": "small"}
    ]


@pytest.mark.parametrize("view", [View(columns="weight"), View(sort="weight")])
def test_an_unknown_column_is_refused_with_those_there_are(
    view: View, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(click.UsageError, match="no column 'weight'; the columns are name, size"):
        shown(view, capsys)


def test_an_empty_listing_has_its_titles() -> None:
    assert aligned([["NAME", "SIZE"]]) == "NAME  SIZE"
