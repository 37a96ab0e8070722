"""Tools are read from a file, and calls of them wait for results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import LlmdError
from llmd_tui.screens.chat.store.records import Call, Content, Ending, Message, Settings
from llmd_tui.screens.chat.tools import tool_names, unanswered, waiting_words, with_tools

WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
TIME = {"type": "function", "function": {"name": "time"}}
CALLS = (Call("weather", "{}", "call_1"), Call("time", "{}", "call_2"))
QUESTION = Message(1, None, "user", Content("how is it?"))


@pytest.mark.parametrize("content", [[WEATHER, TIME], {"model": "guide", "tools": [WEATHER, TIME]}])
def test_tools_are_read_from_a_list_or_a_request_and_removed_again(tmp_path: Path, content: Any) -> None:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(content))
    settings = with_tools(Settings(), f" {file} ")
    assert settings == Settings(tools_file=str(file), tools=(WEATHER, TIME))
    assert tool_names(settings) == "weather, time"
    assert with_tools(settings, "") == Settings()


@pytest.mark.parametrize(
    "content", ["[]", "{}", "7", '[{"type": "function"}]', '[{"function": {"name": 1}}]']
)
def test_a_file_without_tools_is_said_with_the_form(tmp_path: Path, content: str) -> None:
    file = tmp_path / "tools.json"
    file.write_text(content)
    with pytest.raises(LlmdError, match=r"tools\.json (is not a list of tools|declares no tool)") as raised:
        with_tools(Settings(), str(file))
    assert '"function": {"name"' in str(raised.value)


def answer(ending: Ending = "", calls: tuple[Call, ...] = CALLS) -> Message:
    return Message(2, 1, "assistant", Content(calls=calls, ending=ending))


def test_calls_wait_until_each_has_its_result() -> None:
    path = [QUESTION, answer()]
    assert unanswered(path) == CALLS
    assert waiting_words(CALLS) == "The model called weather and 1 more: /result sends what it returned"
    path.append(Message(3, 2, "tool", Content("rain", calls=CALLS[:1])))
    assert unanswered(path) == CALLS[1:]
    assert waiting_words(CALLS[1:]) == "The model called time: /result sends what it returned"
    path.append(Message(4, 3, "tool", Content("noon", calls=CALLS[1:])))
    assert not unanswered(path)
    assert waiting_words(()) == ""


@pytest.mark.parametrize(
    "path", [[], [QUESTION], [QUESTION, answer("stopped")], [QUESTION, answer(calls=())]]
)
def test_nothing_waits_without_a_whole_call(path: list[Message]) -> None:
    assert not unanswered(path)
