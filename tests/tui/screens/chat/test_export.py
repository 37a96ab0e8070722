from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmd.api.errors import LlmdError
from llmd_tui.screens.chat.export import as_json, as_markdown, export
from llmd_tui.screens.chat.store.records import Attachment, Call, Content, Figures, Message, Session, Settings

SESSION = Session(1, "Weather", settings=Settings(model="guide", system="be brief"))
PATH = (
    Message(1, None, "user", Content("how is it?", attachments=(Attachment("a.txt", "x"),))),
    Message(
        2,
        1,
        "assistant",
        Content(
            "sunny",
            reasoning="it is\nJuly",
            calls=(Call("weather", "{}"),),
            figures=Figures("guide", completion_tokens=2),
            ending="stopped",
        ),
    ),
)
OTHER = Message(3, 1, "assistant", Content("rainy"))


def test_markdown_has_the_branch_for_people() -> None:
    assert as_markdown(SESSION, PATH) == (
        "# Weather\n\n## System\n\nbe brief\n\n## You\n\na.txt:\n```\nx\n```\n\nhow is it?\n\n## guide\n\n"
        "> it is\n> July\n\n```json\nweather {}\n```\n\nsunny\n\n*guide · 2 tokens; stopped*\n"
    )


def test_json_has_every_branch_for_programs() -> None:
    exported = json.loads(as_json(SESSION, [*PATH, OTHER]))
    assert exported["version"] == 1
    assert exported["session"]["settings"] == {"model": "guide", "system": "be brief"}
    assert [(one["message_id"], one["parent"]) for one in exported["messages"]] == [(1, None), (2, 1), (3, 1)]


def test_the_suffix_says_which(tmp_path: Path) -> None:
    for name, begin in (("chat.md", "# Weather"), ("chat.json", "{")):
        path = export(str(tmp_path / name), SESSION, PATH, PATH)
        assert path.read_text().startswith(begin)
    with pytest.raises(LlmdError, match=r"must end in \.md or \.json"):
        export("chat.txt", SESSION, PATH, PATH)


def test_no_file_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "chat.md").write_text("mine")
    with pytest.raises(LlmdError, match="exists already"):
        export(str(tmp_path / "chat.md"), SESSION, PATH, PATH)
    with pytest.raises(LlmdError, match="cannot be written"):
        export(str(tmp_path / "missing" / "chat.md"), SESSION, PATH, PATH)
    assert (tmp_path / "chat.md").read_text() == "mine"


def test_markdown_has_the_results_of_tools() -> None:
    call = Call("weather", "{}", "call_1")
    path = (
        PATH[0],
        Message(2, 1, "assistant", Content(calls=(call,))),
        Message(3, 2, "tool", Content("rain", calls=(call,))),
    )
    assert "\n\n## Result\n\nweather:\n```\nrain\n```\n" in as_markdown(SESSION, path)
