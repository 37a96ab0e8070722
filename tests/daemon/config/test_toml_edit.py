from __future__ import annotations

import tomllib
from typing import Any

import pytest

from llmd.api.errors import ConfigError
from llmd.config.toml_edit import toml_value, with_value, without

TEXT = """\
# my settings

[engine]
slots = 3  # few
# the window
max_ctx = 4096

# of one model
[models."org/a"]
max_ctx = 9

[server]
addr = [
  "127.0.0.1:1",  # one
]  # all
"""


@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        (("engine", "slots"), 8, "slots = 3  # few", "slots = 8  # few"),
        (("engine", "threads"), 4, "max_ctx = 4096\n", "max_ctx = 4096\nthreads = 4\n"),
        (("models", "org/a", "max_ctx"), 10, "max_ctx = 9\n", "max_ctx = 10\n"),
        (("models", "org/a", "slots"), 1, "max_ctx = 9\n", "max_ctx = 9\nslots = 1\n"),
        (("server", "addr"), ["x # y"], '[\n  "127.0.0.1:1",  # one\n]  # all', '["x # y"]  # all'),
        (("client", "host"), "h", "# all\n", '# all\n\n[client]\nhost = "h"\n'),
        (("models", "b", "slots"), 1, "# all\n", "# all\n\n[models.b]\nslots = 1\n"),
        (("models", "b/c", "slots"), 1, "# all\n", '# all\n\n[models."b/c"]\nslots = 1\n'),
    ],
)
def test_only_the_line_of_the_key_changes(path: tuple[str, ...], value: Any, old: str, new: str) -> None:
    assert TEXT.count(old) == 1
    assert with_value(TEXT, path, value) == TEXT.replace(old, new)


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("", ("engine", "slots"), "[engine]\nslots = 2\n"),
        ("[engine]", ("engine", "slots"), "[engine]\nslots = 2\n"),
        ("engine.max_ctx = 1 # x\n", ("engine", "slots"), "engine.max_ctx = 1 # x\nengine.slots = 2\n"),
        ("engine.slots = 1 # x\n", ("engine", "slots"), "engine.slots = 2 # x\n"),
        ("[models]\na.slots = 1\n", ("models", "a", "max_ctx"), "[models]\na.slots = 1\na.max_ctx = 2\n"),
        ('"a=b".c = 1', ("a=b", "c"), '"a=b".c = 2\n'),
        ("[a]\r\nb = 1 # x\r\n", ("a", "b"), "[a]\r\nb = 2 # x\r\n"),
        ("[a]\r\nb = 1\r\n", ("a", "c"), "[a]\r\nb = 1\r\nc = 2\r\n"),
        ("a = {b = 1}\n", ("a", "b"), "a = 2\n"),
    ],
)
def test_other_ways_to_write_a_table_are_kept(text: str, path: tuple[str, ...], expected: str) -> None:
    if "{" in text:
        with pytest.raises(ConfigError, match="a table in one line"):
            with_value(text, path, 2)
    else:
        assert with_value(text, path, 2) == expected


@pytest.mark.parametrize(
    "text", ["a = = 1\n", "[engine\n", "engine = {max_ctx = 1, quant = 'q8'}\n", "engine = 3\n"]
)
def test_a_text_that_cannot_be_changed_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="cannot change") as caught:
        with_value(text, ("engine", "slots"), 2)
    assert "llmd config edit" in caught.value.hint


def test_a_removed_key_takes_its_whole_value_along_and_no_other_line() -> None:
    shorter = without(TEXT, ("server", "addr"))
    assert shorter == TEXT[: TEXT.index("addr = ")]
    assert without(TEXT, ("engine", "slots")) == TEXT.replace("slots = 3  # few\n", "")
    assert without(TEXT, ("engine", "threads")) == TEXT
    assert without("engine.slots = 1\n", ("engine", "slots")) == ""


def test_every_kind_of_value_is_read_back() -> None:
    for value in ('tab\t"quoted" \\ ü', 3, -1, 0.5, True, ["a", "b"], []):
        assert tomllib.loads(f"x = {toml_value(value)}")["x"] == value
