from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import ConfigError
from llmd.config.config_file import values_of_file, values_of_text
from llmd.config.sources import raise_error

FAULTY = """\
[engine]
slot = 3
slots = 4
quant = = 2
[engin]
x = 1
[models.guide]
max_body = 3
max_ctx = 5
[models.a.b]
slots = 1
"""


def test_values_have_the_line_that_they_are_in(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("[engine]\n\nslots = 3\n[models.'a/b']\nslots = 4\n")
    found = list(values_of_file(file, raise_error, required=True))
    assert [(one.key, one.model, one.origin.place) for one in found] == [
        ("engine.slots", None, f"{file}:3"),
        ("engine.slots", "a/b", f"{file}:5"),
    ]


def test_every_error_is_reported_with_its_line_and_right_values_are_read() -> None:
    errors: list[ConfigError] = []
    found = list(values_of_text(Path("c.toml"), FAULTY, errors.append))
    assert [(one.key, one.model, one.origin.line) for one in found] == [
        ("engine.slots", None, 3),
        ("engine.max_ctx", "guide", 9),
    ]
    assert [error.line for error in errors] == [4, 2, 5, 8, 10]
    assert all(f"c.toml:{error.line}" in error.message for error in errors)
    assert [error.hint for error in errors][1] == "the nearest name is engine.slots"


def test_a_key_that_is_there_twice_is_an_error() -> None:
    errors: list[ConfigError] = []
    assert not list(values_of_text(Path("c.toml"), "[engine]\nslots = 1\nslots = 2\n", errors.append))
    assert "line 3" in errors[0].message


def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    errors: list[ConfigError] = []
    assert not list(values_of_file(tmp_path / "none", errors.append, required=False))
    assert errors == []
    assert not list(values_of_file(tmp_path / "none", errors.append, required=True))
    assert not list(values_of_file(tmp_path, errors.append, required=False))
    assert [error.message.rpartition(" ")[2] for error in errors] == ["exist", f"'{tmp_path}'"]


def test_a_faulty_header_is_the_only_error_of_its_table() -> None:
    errors: list[ConfigError] = []
    text = '[server\nkeep_alive = "5m"\nslot = 3\n[engine]\nslots = 4\n'
    found = list(values_of_text(Path("c.toml"), text, errors.append))
    assert [error.line for error in errors] == [1]
    assert [one.key for one in found] == ["engine.slots"]


@pytest.mark.parametrize("text", ["keep_alive = '5m'", "[engine]\nkeep_alive = '5m'"])
def test_a_setting_in_another_table_is_told_where_it_belongs(text: str) -> None:
    errors: list[ConfigError] = []
    assert not list(values_of_text(Path("c.toml"), text, errors.append))
    (error,) = errors
    assert (error.hint, error.setting) == ("put it below `[server]`", "")
