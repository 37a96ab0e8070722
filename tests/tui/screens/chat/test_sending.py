"""Questions are sent and answers received, stopped, lost, continued and written again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from textual.widgets import Static

from llmd.api.errors import DaemonUnreachableError, LlmdError
from llmd_tui.screens.chat.request_body import COUNT_ROUTE, ROUTE
from llmd_tui.screens.chat.store.chats import ChatStore
from llmd_tui.screens.chat.store.records import Content, Settings
from llmd_tui.screens.chat.widgets.dialogs import Choose, Confirm
from llmd_tui.screens.chat.widgets.line import Line
from llmd_tui.widgets.key_footer import KeyFooter
from tests.tui.screens.chat.conftest import Chat, OpenChatScreen, chunk, until, usage, whole
from tests.tui.scripted_daemon import ScriptedDaemon, model, request


def progress(line: Line) -> str:
    return str(line.content) if line.display else ""


async def test_a_question_is_answered_with_its_figures_and_both_are_kept(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        await shown.ask("What is it?", "A *model*", " answers.")
        assert shown.texts == ["What is it?", "A *model* answers."]
        assert "guide · 4 tokens" in shown.line(-1, "foot")
        assert "prompt 8 (75% cached)" in shown.line(-1, "foot")
        assert shown.bodies[0] == {
            "model": "guide",
            "messages": [{"role": "user", "content": "What is it?"}],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        await shown.ask("And then?")
        assert [one["role"] for one in shown.bodies[1]["messages"]] == ["user", "assistant", "user"]
        kept = await shown.screen.store.call(ChatStore.messages, shown.screen.chat.session.session_id)
        assert [one.content.text for one in kept] == shown.texts


def escape(shown: Chat) -> str:
    """Return what the footer says of Esc; empty if it does nothing."""
    keys = shown.screen.query_one(KeyFooter).keys
    return next((one.description for one in keys if one.key == "escape"), "")


async def test_the_footer_says_what_escape_does(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        await shown.until(lambda: escape(shown) == "")
        await shown.type("hello")
        await shown.until(lambda: escape(shown) == "Stop")
        await shown.pilot.press("ctrl+l")
        await shown.until(lambda: escape(shown) == "Back")  # from the list of chats to the prompt
        await shown.pilot.press("escape")
        await shown.until(lambda: escape(shown) == "Stop")
        await shown.pilot.press("escape")
        await shown.until(lambda: escape(shown) == "")
        await shown.pilot.press("tab")
        await shown.until(lambda: escape(shown) == "Back")
        await shown.settle()


async def test_escape_stops_the_answer_at_the_daemon_and_c_continues_it(
    chat: OpenChatScreen, daemon: ScriptedDaemon
) -> None:
    async with chat() as shown:
        daemon.put(ROUTE, chunk("half an"))
        await shown.type("go")
        await shown.until(lambda: shown.texts[-1:] == ["half an"])
        await shown.pilot.press("escape")
        await shown.settle()
        assert daemon.left == [ROUTE]
        assert "✗ stopped – Tab, then c continues it" in shown.line(-1, "foot")
        daemon.put(ROUTE, *whole(" answer"))
        await shown.pilot.press("tab", "c")
        await shown.until(lambda: shown.texts == ["go", "half an answer"])
        await shown.settle()
        assert shown.bodies[1]["messages"][-1] == {"role": "assistant", "content": "half an"}
        assert "stopped" not in shown.line(-1, "foot")


BEGINNING: dict[str, tuple[dict[str, Any], ...]] = {
    "before the first token": (),
    "after the role": (chunk(role="assistant"),),
    "after a token": (chunk("some"),),
}


@pytest.mark.parametrize("arrived", BEGINNING.values(), ids=BEGINNING)
async def test_an_answer_is_stopped_at_any_stage(
    chat: OpenChatScreen, daemon: ScriptedDaemon, arrived: tuple[dict[str, Any], ...]
) -> None:
    async with chat() as shown:
        await shown.ask("one")
        daemon.put(ROUTE, *arrived)
        await shown.pilot.press("ctrl+r")
        await shown.until(lambda: "‹ 2/2 ›" in shown.line(-1, "head"))
        await shown.pilot.press("escape")
        await shown.until(lambda: "✗ stopped" in shown.line(-1, "foot"))
        await shown.settle()
        assert shown.screen.running_id is None
        assert not progress(shown.screen.query_one("#progress", Line))


async def test_an_answer_is_stopped_however_soon_after_its_beginning(
    chat: OpenChatScreen, daemon: ScriptedDaemon
) -> None:
    async with chat() as shown:
        await shown.ask("one")
        for turns in range(0, 60, 10):
            daemon.put(ROUTE, chunk("some"))
            shown.screen.act_on_last("regenerate")
            await until(lambda: shown.screen.sending.running(shown.screen.chat))
            for _ in range(turns):
                await asyncio.sleep(0)
            assert shown.screen.stop()
            await shown.until(lambda: not shown.screen.stop())
            assert shown.screen.chat.path[-1].content.ending == "stopped"
        await shown.settle()
        assert "✗ stopped" in shown.line(-1, "foot")
        assert len(shown.texts) == 2


async def test_a_question_that_is_stopped_before_it_is_sent_comes_back(
    chat: OpenChatScreen, daemon: ScriptedDaemon
) -> None:
    async with chat() as shown:

        def stopped(_body: object) -> dict[str, Any]:
            shown.screen.stop()
            return {"input_tokens": 12}

        await shown.settle()
        daemon.answers[COUNT_ROUTE] = stopped
        shown.screen.prompt.write("one")
        shown.screen.prompt.action_send()
        await shown.until(lambda: shown.screen.prompt.text == "one")
        assert (shown.texts, shown.bodies) == ([], [])


async def test_two_answers_of_one_chat_are_never_written_at_a_time(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        await shown.ask("one")
        shown.screen.act_on_last("regenerate")
        shown.screen.act_on_last("regenerate")
        await shown.until(lambda: shown.notices == ["An answer is being written. Esc stops it."])
        shown.daemon.put(ROUTE, *whole("again"))
        await shown.settle()
        assert shown.texts == ["one", "again"]
        assert "‹ 2/2 ›" in shown.line(-1, "head")


async def test_a_daemon_that_is_restarted_leaves_what_was_received(
    chat: OpenChatScreen, daemon: ScriptedDaemon
) -> None:
    async with chat() as shown:
        lost = DaemonUnreachableError("the connection to the daemon was lost", hint="start it")
        daemon.put(ROUTE, chunk("half"), lost)
        await shown.type("go")
        await shown.until(lambda: "lost" in shown.line(-1, "foot"))
        assert shown.texts == ["go", "half"]
        assert "start it" in shown.line(-1, "foot")
        daemon.put(ROUTE, *whole("a whole answer"))
        await shown.pilot.press("ctrl+r")
        await shown.until(lambda: shown.texts == ["go", "a whole answer"])
        await shown.settle()
        assert "‹ 2/2 ›" in shown.line(-1, "head")


async def test_a_question_that_got_no_answer_is_not_sent_again(
    chat: OpenChatScreen, daemon: ScriptedDaemon
) -> None:
    async with chat() as shown:
        daemon.put(ROUTE, LlmdError("there is no such model"))
        await shown.type("first")
        await shown.until(lambda: "there is no such model" in shown.line(-1, "foot"))
        await shown.settle()
        await shown.ask("second")
        assert shown.bodies[1]["messages"] == [{"role": "user", "content": "second"}]


async def test_the_time_before_the_first_token_is_explained(
    chat: OpenChatScreen, daemon: ScriptedDaemon
) -> None:
    async with chat() as shown:
        daemon.snapshot(models=(model(),))
        await shown.type("go")
        line = shown.screen.query_one("#progress", Line)
        await shown.until(lambda: "waiting for the first token" in progress(line))
        (mine,) = daemon.request_ids[-1:]
        daemon.send("request", **request("other", state="waiting"))
        daemon.send("request", **request(mine, state="waiting"))
        await shown.until(lambda: "waiting: 1 request before it" in progress(line))
        daemon.send("request", **request(mine, state="prefill", prompt_done=512, prompt_tokens=2048))
        await shown.until(lambda: "reading the prompt 512/2048  ■■■■■···" in progress(line))
        daemon.put(ROUTE, *whole("done"))
        await shown.until(lambda: not progress(line))


async def test_one_answer_at_a_time_is_written_in_a_chat(
    chat: OpenChatScreen, daemon: ScriptedDaemon
) -> None:
    async with chat() as shown:
        daemon.put(ROUTE, chunk("half"))
        await shown.type("one")
        await shown.until(lambda: shown.texts[-1:] == ["half"])
        await shown.type("two")
        await shown.until(lambda: shown.notices)
        assert shown.notices == ["An answer is being written. Esc stops it."]
        await shown.until(lambda: shown.screen.prompt.text == "two")
        assert shown.texts == ["one", "half"]


async def test_a_chat_that_is_left_goes_on(chat: OpenChatScreen, daemon: ScriptedDaemon) -> None:
    async with chat() as shown:
        daemon.put(ROUTE, chunk("half"))
        await shown.type("one")
        await shown.until(lambda: shown.texts[-1:] == ["half"])
        session = shown.screen.chat.session.session_id
        await shown.pilot.press("ctrl+n")
        await shown.until(lambda: shown.texts == [])
        daemon.put(ROUTE, chunk(" and half", "stop"), usage(), None)
        await shown.settle()
        await shown.screen._open_session(session)
        assert shown.texts == ["one", "half and half"]


async def test_a_conversation_that_is_too_long_is_shortened_only_on_request(
    chat: OpenChatScreen, daemon: ScriptedDaemon
) -> None:
    async with chat() as shown:
        for text in ("one", "two"):
            await shown.ask(text)
        daemon.answers[COUNT_ROUTE] = lambda body: {"input_tokens": 24 * len(body["messages"])}
        await shown.type("three")
        await shown.until(lambda: isinstance(shown.tui.screen, Confirm))
        await shown.pilot.press("n")
        await shown.until(lambda: shown.screen.prompt.text == "three")
        assert len(shown.bodies) == 2
        daemon.put(ROUTE, *whole("third"))
        await shown.pilot.press("enter")
        await shown.until(lambda: isinstance(shown.tui.screen, Confirm))
        words = str(shown.tui.screen.query_one(".text", Static).content)
        assert "has 120 tokens, and the context holds 100" in words
        await shown.pilot.press("y")
        await shown.until(lambda: len(shown.bodies) == 3)
        await shown.settle()
        assert [one["content"] for one in shown.bodies[2]["messages"]] == ["two", "answer to two", "three"]
        assert [view.has_class("dropped") for view in shown.screen.conversation.views[:3]] == [
            True,
            True,
            False,
        ]


async def test_a_message_that_is_too_long_alone_stays_in_the_prompt(
    chat: OpenChatScreen, daemon: ScriptedDaemon
) -> None:
    async with chat() as shown:
        daemon.posts[COUNT_ROUTE] = {"input_tokens": 130}
        await shown.type("long")
        await shown.until(lambda: shown.notices)
        assert shown.notices == ["This message alone has 130 tokens, the context holds 100: shorten it."]
        await shown.until(lambda: shown.screen.prompt.text == "long")
        assert shown.bodies == []


async def test_without_a_model_one_is_chosen_first(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        shown.screen.chat.choose(Settings())
        shown.daemon.put(ROUTE, *whole("hello"))
        await shown.type("hi")
        await shown.until(lambda: isinstance(shown.tui.screen, Choose))
        await shown.pilot.press("o", "t", "h", "enter")
        await shown.until(lambda: shown.bodies)
        assert shown.bodies[0]["model"] == "other"


async def test_leaving_the_interface_keeps_what_has_arrived(
    chat: OpenChatScreen, daemon: ScriptedDaemon
) -> None:
    async with chat() as shown:
        daemon.put(ROUTE, chunk("half"))
        await shown.type("one")
        await shown.until(lambda: shown.texts[-1:] == ["half"])
        folder = shown.tui.folders.data
    store = ChatStore.open(folder, lambda: 1.0)
    (session,) = store.sessions()
    content = store.messages(session.session_id)[-1].content
    assert (content.text, content.ending) == ("half", "stopped")
    assert daemon.left == [ROUTE]


async def test_an_answer_that_a_crash_cut_off_says_so(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        screen = shown.screen
        question = await screen.chat.add("user", Content("one"), None)
        await screen.chat.add("assistant", Content("half", ending="running"), question.message_id)
        await screen.show_chat()
        assert "llmd tui ended while this was written – Tab, then c continues it" in shown.line(-1, "foot")
