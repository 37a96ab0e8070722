"""Input of a chat: one line or several, and a history that only its owner can read."""

from __future__ import annotations

import readline
from collections.abc import Callable
from pathlib import Path

import pytest

from llmd.cli.line_reader import CONTINUED, PROMPT, confirmed, editing, read_message


def typing(*lines: str) -> tuple[Callable[[str], str], list[str]]:
    """Return a reader of prepared lines, and the list of the prompts that it gets."""
    waiting, prompts = list(lines), []

    def read(prompt: str) -> str:
        prompts.append(prompt)
        if not waiting:
            raise EOFError
        return waiting.pop(0)

    return read, prompts


def test_a_line_is_a_message() -> None:
    read, prompts = typing("hello", "next")
    assert read_message(read) == "hello"
    assert prompts == [PROMPT]


def test_three_quotes_begin_and_end_several_lines() -> None:
    read, prompts = typing('"""first', "", 'last"""')
    assert read_message(read) == "first\n\nlast"
    assert prompts == [PROMPT, CONTINUED, CONTINUED]


def test_quotes_may_stand_alone_or_on_one_line() -> None:
    assert read_message(typing('"""', "text", '"""')[0]) == "text"
    assert read_message(typing('"""one line"""')[0]) == "one line"
    assert read_message(typing('"""', '"""')[0]) == ""


def test_the_end_of_input_passes_through() -> None:
    with pytest.raises(EOFError):
        read_message(typing()[0])
    with pytest.raises(EOFError):
        read_message(typing('"""open')[0])


@pytest.mark.parametrize(
    ("reply", "agreed"), [("", True), ("y", True), (" Yes", True), ("n", False), ("what?", False)]
)
def test_enter_alone_agrees_and_only_a_yes_does_too(reply: str, agreed: bool) -> None:  # noqa: FBT001
    read, prompts = typing(reply)
    assert confirmed("go on?", read) is agreed
    assert prompts == ["go on? [Y/n] "]


def test_who_leaves_a_question_does_not_agree() -> None:
    def interrupted(_prompt: str) -> str:
        raise KeyboardInterrupt

    assert not confirmed("go on?", interrupted)
    assert not confirmed("go on?", typing()[0])


def nothing(_before: str, _word: str) -> list[str]:
    """Return no completions."""
    return []


def test_history_is_kept_for_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "chat_history"
    with editing(path, nothing):
        readline.add_history("first question")
    assert path.stat().st_mode & 0o777 == 0o600
    readline.clear_history()
    with editing(path, nothing):
        assert readline.get_history_item(1) == "first question"
    path.chmod(0o644)
    with editing(path, nothing):
        assert path.stat().st_mode & 0o777 == 0o600


def test_readline_gets_one_completion_after_another() -> None:
    with editing(None, lambda before, word: [f"{word}{before}{number}" for number in (1, 2)]):
        complete = readline.get_completer()
        assert complete is not None
        assert [complete("a", place) for place in range(3)] == ["a1", "a2", None]
    assert readline.get_completer() is None
