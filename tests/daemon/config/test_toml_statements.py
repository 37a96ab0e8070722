from __future__ import annotations

import pytest

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


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("keep_alive = 5m", 'texts need quotes: keep_alive = "5m"'),
        ("host = unix:/x y  # mine", 'texts need quotes: host = "unix:/x y"'),
        ('keep_alive = "10s', 'the text has a quote at one end only; write keep_alive = "10s"'),
        ("keep_alive = 10s'  # q", 'the text has a quote at one end only; write keep_alive = "10s"'),
        ("a.b = '", 'the text has a quote at one end only; write a.b = ""'),
        ("no_auth = True", "switches have no capitals: no_auth = true"),
    ],
)
def test_errors_are_told_to_people_who_do_not_know_toml(line: str, error: str) -> None:
    (only,) = statements(line)
    assert only.error == error


@pytest.mark.parametrize("line", ["slots = = 3", "slots =", "slots = 3 4", "addr = [1", "[server"])
def test_other_errors_are_in_the_words_of_the_parser(line: str) -> None:
    (only,) = statements(line)
    assert only.error
    assert "quote" not in only.error


def test_what_follows_a_faulty_header_is_stray_until_the_next_header() -> None:
    found = statements("a = 1\n[t\nb = 2\nc = [\n3]\n[u]\nd = 4\n")
    assert [one.line for one in found if one.is_stray] == [2, 3, 4]
    assert [number for one in found if one.is_stray for number in one.lines] == [2, 3, 4, 5]
