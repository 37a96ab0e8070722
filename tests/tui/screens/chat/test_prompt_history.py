from __future__ import annotations

from llmd_tui.screens.chat.prompt_history import PromptHistory


def test_earlier_questions_are_stepped_through_and_the_draft_comes_back() -> None:
    history = PromptHistory(["one", "two"])
    assert history.newer() is None
    assert [history.older("draft"), history.older("two"), history.older("one")] == ["two", "one", None]
    assert [history.newer(), history.newer(), history.newer()] == ["two", "draft", None]


def test_a_sent_question_is_the_newest_and_is_kept_once() -> None:
    history = PromptHistory(["one"])
    history.older("")
    history.add("two")
    history.add("two")
    history.add("")
    assert [history.older(""), history.older("two"), history.older("one")] == ["two", "one", None]
