"""An answer grows at a limited rate and is shown whole at its end."""

from __future__ import annotations

import asyncio

import pytest
from textual.widgets import Markdown
from textual.widgets.markdown import MarkdownFence

from llmd_tui import actions
from llmd_tui.screens.chat.store.records import Attachment, Call, Content, Figures, Message
from llmd_tui.screens.chat.widgets.line import Line
from llmd_tui.screens.chat.widgets.message_view import (
    UPDATES_PER_S,
    MessageView,
    call_words,
    reasoning_words,
)
from tests.tui.screens.chat.widgets.shown_widget import alone

CODE = "Try\n\n```python\nprint(1)\n```\n"


def answer(content: Content) -> MessageView:
    return MessageView(Message(2, 1, "assistant", content), (1, 1))


def line(view: MessageView, name: str) -> str:
    found = view.query_one(f".{name}", Line)
    return str(found.content) if found.display else ""


async def test_a_question_is_shown_as_it_was_typed() -> None:
    content = Content("[bold] *not* markup", attachments=(Attachment("a.txt", "text"),))
    view = MessageView(Message(1, None, "user", content), (2, 3))
    async with alone(view):
        assert line(view, "text") == "[bold] *not* markup"
        assert line(view, "chips") == "+ a.txt, 4 B"
        assert line(view, "head") == "You  ‹ 2/3 ›"
        view.show_place((1, 1))
        assert line(view, "head") == "You"


async def test_an_answer_is_markdown_with_its_calls_figures_and_end() -> None:
    content = Content(
        CODE, "so", (Call("search", '{"q":1}'),), figures=Figures("guide", seed=7), ending="stopped"
    )
    view = answer(content)
    async with alone(view):
        assert (
            view.query_one(MarkdownFence).code == "print(1)\n".rstrip("\n")
            or "print(1)" in view.query_one(MarkdownFence).code
        )
        assert line(view, "calls") == '⚙ search\n{\n  "q": 1\n}'
        assert (
            line(view, "foot")
            == "✗ stopped – Tab, then c continues it; Ctrl-R writes another one\nguide · seed 7"
        )
        assert line(view, "reasoning") == "▸ reasoning, 1 words (t shows it)"


async def test_reasoning_is_shown_with_a_key() -> None:
    view = answer(Content("so", "because"))
    async with alone(view) as (pilot, _):
        view.focus()
        await pilot.press("t")
        assert line(view, "reasoning").splitlines()[1] == "because"
        await pilot.press("t")
        assert "because" not in line(view, "reasoning")


async def test_an_answer_grows_and_is_shown_whole_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    view = answer(Content())
    grown = ["Try\n\n```py", "thon\nprint", "(1)\n```\n"]
    shown: list[str] = []

    async with alone(view) as (pilot, app):
        updates: list[str] = []
        update = Markdown.update

        def counted(self: Markdown, markdown: str) -> object:
            updates.append(markdown)
            return update(self, markdown)

        monkeypatch.setattr(Markdown, "update", counted)
        view.follow(lambda: Content("".join(shown), ending="running"))
        assert view._timer is not None
        for piece in grown:
            shown.append(piece)
            await view.show_growth()
        await view.show_growth()  # nothing new
        await pilot.pause()
        markdown = view.query_one(Markdown)
        assert sum(isinstance(one, MessageView.Grown) for one in app.posted) <= len(grown)
        assert line(view, "foot") == ""  # no reason yet why it ended
        assert updates == []
        await view.finish(Content(CODE))
        assert updates == [CODE]
        assert "print(1)" in markdown.query_one(MarkdownFence).code
        assert view._timer is None


async def test_an_answer_that_ends_as_it_begins_to_grow_is_shown_whole() -> None:
    view = answer(Content())
    async with alone(view):
        view.follow(lambda: Content("a", ending="running"))
        growth = asyncio.create_task(view.show_growth())  # noqa: TID251 - awaited below
        await asyncio.sleep(0)  # the task that would show the growth is there, but has not begun
        await view.finish(Content("ab"))
        await growth
        assert view.query_one(Markdown).source == "ab"
        await view.finish(Content("abc"))
        assert view.query_one(Markdown).source == "abc"


async def test_an_answer_that_is_being_written_has_not_ended() -> None:
    content = Content(ending="running")
    view = MessageView(Message(2, 1, "assistant", content), (1, 1), lambda: content)
    async with alone(view):
        assert line(view, "foot") == ""


async def test_growth_is_shown_at_most_twenty_times_a_second() -> None:
    view = answer(Content())
    async with alone(view):
        view.follow(Content)
        assert view._timer is not None
        assert view._timer._interval == 1 / UPDATES_PER_S == 0.05


async def test_clicks_copy_a_code_block_and_a_message() -> None:
    view = answer(Content(CODE))
    async with alone(view) as (pilot, app):
        await pilot.pause()
        await pilot.click(MarkdownFence)
        await pilot.click(".head")
        await pilot.pause()
        (copied,) = (one for one in app.posted if isinstance(one, actions.CopyText))
        assert "print(1)" in copied.text
        assert [one.action for one in app.posted if isinstance(one, MessageView.Wanted)] == ["copy"]


async def test_links_are_copied_and_never_opened() -> None:
    view = answer(Content("[here](https://example.org)"))
    async with alone(view) as (pilot, app):
        view.query_one(Markdown).post_message(
            Markdown.LinkClicked(view.query_one(Markdown), "https://example.org")
        )
        await pilot.pause()
        await asyncio.sleep(0)
        (copied,) = (one for one in app.posted if isinstance(one, actions.CopyText))
        assert copied.text == "https://example.org"


async def test_every_key_says_what_is_wanted_of_which_message() -> None:
    view = answer(Content("text"))
    keys = {
        "y": "copy",
        "b": "copy_code",
        "e": "edit",
        "r": "regenerate",
        "c": "continue",
        "left": "previous",
        "right": "next",
        "x": "delete",
        "o": "open",
    }
    async with alone(view) as (pilot, app):
        view.focus()
        await pilot.press(*keys, "up", "j")
        await pilot.pause()
        assert [one.step for one in app.posted if isinstance(one, MessageView.Stepped)] == [-1, 1]
        wanted = [(one.action, one.message_id) for one in app.posted if isinstance(one, MessageView.Wanted)]
        assert wanted == [(action, 2) for action in keys.values()]


def test_calls_are_shown_even_if_they_are_not_whole() -> None:
    assert call_words(Call("search", '{"q": [1]}')) == '⚙ search\n{\n  "q": [\n    1\n  ]\n}'
    assert call_words(Call("search", '{"q": ')) == '⚙ search\n{"q": '


def test_reasoning_is_folded_to_its_length() -> None:
    assert reasoning_words(Content(), folded=True) == ""
    assert reasoning_words(Content(reasoning="a b c"), folded=True).startswith("▸ reasoning, 3 words")
