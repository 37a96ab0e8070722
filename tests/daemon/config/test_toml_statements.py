from __future__ import annotations

from llmd.config.toml_statements import dotted, line_numbers, statements

TEXT = """\
# mine
title = "a # b"  # trailing

[engine]
slots = 3
split = [
  # devices
  "0-3=cpu",
]
[models."org/m-2.5"]
a.b = 1
x = {y = 1, z = 2}
"""


def test_keys_and_tables_have_the_line_of_their_beginning() -> None:
    assert line_numbers(TEXT) == {
        ("title",): 2,
        ("engine",): 4,
        ("engine", "slots"): 5,
        ("engine", "split"): 6,
        ("models", "org/m-2.5"): 10,
        ("models", "org/m-2.5", "a", "b"): 11,
        ("models", "org/m-2.5", "x"): 12,
    }


def test_the_statements_are_the_text() -> None:
    assert "".join(one.text for one in statements(TEXT)) == TEXT
    assert [one.text.count("\n") for one in statements(TEXT)] == [1, 1, 1, 1, 1, 4, 1, 1, 1]


def test_a_faulty_line_does_not_hide_the_next_ones() -> None:
    found = statements("a = = 1\nb = [\nc = 3\n[t\nd = 4\n")
    assert [(one.line, one.path) for one in found if not one.error] == [(3, ("c",)), (5, ("d",))]
    assert [one.line for one in found if one.error] == [1, 2, 4]


def test_windows_line_breaks_are_kept() -> None:
    assert [one.text for one in statements("[a]\r\nb = 1\r\n")] == ["[a]\r\n", "b = 1\r\n"]


def test_a_text_may_end_without_a_line_break() -> None:
    (only,) = statements("a = 1")
    assert (only.text, only.path) == ("a = 1", ("a",))


def test_paths_are_quoted_where_they_must_be() -> None:
    assert dotted(("models", "org/m-2.5", "slots")) == 'models."org/m-2.5".slots'
