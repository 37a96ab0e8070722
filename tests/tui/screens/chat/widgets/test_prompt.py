from __future__ import annotations

from textual import events

from llmd_tui.screens.chat.attachments import LONG_PASTE
from llmd_tui.screens.chat.prompt_history import PromptHistory
from llmd_tui.screens.chat.widgets.prompt import Prompt
from tests.tui.screens.chat.widgets.shown_widget import WidgetApp, alone


def sent(app: WidgetApp) -> list[str]:
    return [message.text for message in app.posted if isinstance(message, Prompt.Sent)]


async def test_enter_sends_all_that_was_typed_before_it() -> None:
    prompt = Prompt()
    async with alone(prompt) as (pilot, app):
        prompt.focus()
        await pilot.press(*"one", "enter", *"two", "ctrl+j", *"three", "enter", "enter")
        await pilot.pause()
        assert sent(app) == ["one", "two\nthree"]
        assert prompt.text == ""


async def test_it_grows_with_its_text_up_to_a_limit() -> None:
    prompt = Prompt()
    async with alone(prompt, (40, 30)) as (pilot, _):
        heights = []
        for lines in (1, 4, 50):
            prompt.write("\n".join("x" * lines))
            await pilot.pause()
            heights.append(prompt.size.height)
        assert heights == [1, 4, 8]


async def test_up_and_down_at_the_edges_show_earlier_messages() -> None:
    prompt = Prompt()
    async with alone(prompt) as (pilot, _):
        prompt.focus()
        prompt.asked = PromptHistory(["one", "two\nlines"])
        await pilot.press(*"draft", "up")
        assert prompt.text == "two\nlines"
        await pilot.press("up", "up")  # first within the text
        assert prompt.text == "one"
        await pilot.press("down", "down", "down")
        assert prompt.text == "draft"


async def test_a_long_paste_is_no_text_and_a_short_one_is() -> None:
    prompt = Prompt()
    async with alone(prompt) as (pilot, app):
        prompt.focus()
        for text in ("short", "x" * (LONG_PASTE + 1)):
            app.post_message(events.Paste(text))
            await pilot.pause()
        assert prompt.text == "short"
        (pasted,) = (message for message in app.posted if isinstance(message, Prompt.LongPaste))
        assert len(pasted.text) == LONG_PASTE + 1


async def test_what_could_not_be_sent_comes_back_before_what_was_typed_since() -> None:
    prompt = Prompt()
    async with alone(prompt):
        prompt.give_back("first")
        assert prompt.text == "first"
        prompt.give_back("zeroth")
        assert prompt.text == "zeroth\nfirst"
