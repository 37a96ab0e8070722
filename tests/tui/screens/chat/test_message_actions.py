"""What the keys of a message do."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from textual.widget import Widget

from llmd_tui.screens.chat.store.chats import ChatStore
from llmd_tui.screens.chat.store.records import Content
from llmd_tui.screens.chat.widgets.dialogs import AskText, Choose, Confirm
from llmd_tui.screens.chat.widgets.line import Line
from llmd_tui.screens.chat.widgets.message_view import MessageView
from tests.tui.screens.chat.conftest import Chat, OpenChatScreen


def copied(chat: Chat) -> str:
    return (chat.tui.folders.state / "copied.txt").read_text()


def more_than(chat: Chat, asked: int) -> bool:
    return len(chat.bodies) > asked


async def test_an_edited_question_becomes_a_branch_and_arrows_go_between_them(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        await shown.ask("one")
        await shown.pilot.press("tab", "up", "e")
        await shown.until(lambda: shown.screen.prompt.text == "one")
        await shown.ask("two")
        assert shown.texts == ["two", "answer to two"]
        assert shown.bodies[1]["messages"] == [{"role": "user", "content": "two"}]
        await shown.until(lambda: "‹ 2/2 ›" in shown.line(0, "head"))
        await shown.pilot.press("tab", "up", "left")
        await shown.until(lambda: shown.texts == ["one", "answer to one"])
        await shown.pilot.press("right")
        await shown.until(lambda: shown.texts == ["two", "answer to two"])


async def test_the_cursor_goes_from_branch_to_branch_and_never_to_the_list_of_chats(
    chat: OpenChatScreen,
) -> None:
    async with chat() as shown:
        await shown.ask("one")
        await shown.pilot.press("tab", "up", "e")
        await shown.until(lambda: shown.screen.prompt.text == "one")
        await shown.ask("two")
        await shown.until(lambda: "‹ 2/2 ›" in shown.line(0, "head"))
        await shown.pilot.press("tab", "up")
        focused: list[Widget | None] = []

        def note(widget: Widget | None) -> None:
            focused.append(widget)

        shown.screen.watch(shown.screen, "focused", note)
        await shown.pilot.press("left")
        await shown.until(lambda: shown.texts == ["one", "answer to one"])
        await shown.until(lambda: shown.screen.focused is shown.screen.conversation.views[0])
        assert {type(widget) for widget in focused} == {MessageView}


async def test_a_message_without_branches_or_reasoning_says_so(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        await shown.ask("one")
        await shown.pilot.press("tab", "right", "t")
        await shown.until(lambda: len(shown.notices) == 2)
        assert shown.notices == [
            "There is no other branch here: e and r make one.",
            "This message has no reasoning.",
        ]


async def test_escape_leaves_an_edit_as_it_was(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        await shown.ask("one")
        await shown.pilot.press("tab", "up", "e")
        await shown.until(lambda: shown.screen.edited)
        note = shown.screen.query_one("#note", Line)
        assert "Editing a message" in str(note.content)
        await shown.pilot.press("escape")
        assert (shown.screen.edited, shown.screen.prompt.text, note.display) == (None, "", False)


async def test_an_edited_answer_is_a_branch_without_a_request(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        await shown.ask("one")
        await shown.pilot.press("tab", "e")
        await shown.until(lambda: isinstance(shown.tui.screen, AskText))
        await shown.pilot.press("X", "ctrl+s")
        await shown.until(lambda: shown.texts == ["one", "answer to oneX"])
        assert len(shown.bodies) == 1
        await shown.until(lambda: "‹ 2/2 ›" in shown.line(-1, "head"))


async def test_a_branch_is_deleted_after_a_question(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        await shown.ask("one")
        await shown.ask("two")
        await shown.pilot.press("tab", "up", "x")
        await shown.until(lambda: isinstance(shown.tui.screen, Confirm))
        await shown.pilot.press("n")
        assert len(shown.texts) == 4
        await shown.pilot.press("x")
        await shown.until(lambda: isinstance(shown.tui.screen, Confirm))
        await shown.pilot.press("y")
        await shown.until(lambda: shown.texts == ["one", "answer to one"])
        kept = await shown.screen.store.call(ChatStore.messages, shown.screen.chat.session.session_id)
        assert len(kept) == 2


async def test_a_message_and_its_code_are_copied(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        await shown.ask("one", "Try\n```\nls\n```\nor\n```\ncd\n```\n")
        await shown.pilot.press("tab", "y")
        await shown.until(lambda: shown.notices)
        assert copied(shown).startswith("Try")
        await shown.pilot.press("b")
        await shown.until(lambda: isinstance(shown.tui.screen, Choose))
        await shown.pilot.press("c", "d", "enter")
        await shown.until(lambda: copied(shown) == "cd\n")
        await shown.pilot.press("up", "b")
        await shown.until(lambda: "This message has no code block." in shown.notices)


async def test_a_question_can_be_answered_again_and_again(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        await shown.ask("one")
        await shown.pilot.press("tab", "up")
        for place, key in enumerate("rc", start=2):
            asked = len(shown.bodies)
            shown.daemon.put("/v1/chat/completions", {"choices": [{"delta": {"content": key}}]}, None)
            shown.view(0).focus()
            await shown.pilot.press(key)
            await shown.until(partial(more_than, shown, asked))
            await shown.settle()
            assert shown.texts == ["one", key]
            assert f"‹ {place}/{place} ›" in shown.line(-1, "head")


async def test_an_editor_needs_a_terminal(chat: OpenChatScreen, tmp_path: Path) -> None:
    async with chat() as shown:
        question = await shown.screen.chat.add("user", Content("one"), None)
        await shown.screen.show_chat()
        shown.screen.act_on("open", question.message_id)
        await shown.until(lambda: shown.notices == ["this terminal cannot be left to an editor"])
