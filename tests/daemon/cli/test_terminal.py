"""Terminal capabilities are detected from the stream and the environment."""

from __future__ import annotations

import io
import os
import sys

import pytest

from llmd.cli.terminal import dimmed, has_changing_lines, has_styles, replace_line, terminal_width
from tests.serving.terminal import Screen, terminal


@pytest.fixture(autouse=True)
def _capable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_text_is_dimmed_where_the_terminal_can_and_the_user_allows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert has_styles()
    assert dimmed("hm") == "\x1b[2mhm\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert dimmed("hm") == "hm"
    monkeypatch.setenv("NO_COLOR", "")
    assert has_styles()
    monkeypatch.setenv("TERM", "dumb")
    assert dimmed("hm") == "hm"


def test_lines_change_on_terminals_that_are_not_dumb(monkeypatch: pytest.MonkeyPatch) -> None:
    assert has_changing_lines(Screen())
    assert not has_changing_lines(io.StringIO())
    monkeypatch.setenv("TERM", "dumb")
    assert not has_changing_lines(Screen())


def test_a_line_is_replaced_by_as_much_as_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "6")
    assert terminal_width() == 6
    for text, fitting in (("", ""), ("abc", "abc"), ("abcdefg", "abcde"), ("日本語", "日本 ")):
        screen = Screen()
        replace_line(screen, text)
        assert screen.getvalue() == f"\r{fitting}\x1b[K"


def test_the_width_is_that_of_the_terminal_now() -> None:
    program = "from llmd.cli.terminal import terminal_width as w\nprint(w(), '.')\ninput()\nprint(w(), '.')"
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    with terminal([sys.executable, "-c", program], environment, columns=33) as screen:
        screen.wait_for("33 .")
        screen.resize(120)
        screen.type("\n")
        screen.wait_for("120 .")
