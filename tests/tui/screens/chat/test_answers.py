"""An answer is received to its end, or stopped, and what arrived is kept on the way."""

from __future__ import annotations

import asyncio
import itertools

from llmd.api.errors import DaemonUnreachableError
from llmd_tui.screens.chat.answer import Answer
from llmd_tui.screens.chat.answers import Running
from llmd_tui.screens.chat.open_chat import UNSAVED, OpenChat
from llmd_tui.screens.chat.request_body import ROUTE
from llmd_tui.screens.chat.store.background import BackgroundStore
from llmd_tui.screens.chat.store.records import Content
from llmd_tui.state.daemon_state import DaemonState, Request
from tests.tui.screens.chat.conftest import chunk, until, whole
from tests.tui.scripted_daemon import ScriptedDaemon


async def running(store: BackgroundStore) -> Running:
    chat = OpenChat(store, UNSAVED)
    question = await chat.add("user", Content("one"), None)
    message = await chat.add("assistant", Content(ending="running"), question.message_id)
    answer = Answer(0.0, model="guide", seed=None, window=100)
    one = Running(chat, answer, {"model": "guide"}, 0.0)
    one.message_id = message.message_id
    return one


async def test_an_answer_is_received_under_its_own_id(store: BackgroundStore, daemon: ScriptedDaemon) -> None:
    one, other = await running(store), await running(store)
    daemon.put(ROUTE, *whole("he", "llo"))
    await one.receive(daemon, itertools.count(1.0).__next__)
    assert (one.answer.content().text, one.answer.ending) == ("hello", "")
    assert daemon.request_ids == [one.request_id]
    assert one.request_id != other.request_id


async def test_a_stopped_request_ends_at_the_daemon(store: BackgroundStore, daemon: ScriptedDaemon) -> None:
    one = await running(store)
    daemon.put(ROUTE, chunk("half"))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(one.receive(daemon, lambda: 1.0))
        await until(lambda: one.answer.has_begun)
        one.stop()
    assert daemon.left == [ROUTE]
    assert (one.answer.content().text, one.answer.ending) == ("half", "stopped")
    one.stop()  # again: it has ended


async def test_what_is_stopped_before_it_begins_is_never_asked_for(
    store: BackgroundStore, daemon: ScriptedDaemon
) -> None:
    one = await running(store)
    one.stop()
    await one.receive(daemon, lambda: 1.0)
    assert (one.answer.ending, daemon.asked) == ("stopped", [])


async def test_a_lost_daemon_ends_it_with_the_reason(store: BackgroundStore, daemon: ScriptedDaemon) -> None:
    one = await running(store)
    daemon.put(ROUTE, chunk("half"), DaemonUnreachableError("reset", hint="start it"))
    await one.receive(daemon, lambda: 1.0)
    assert (one.answer.ending, one.answer.reason) == ("lost", "reset (start it)")


async def test_what_has_arrived_is_kept_once_a_second(store: BackgroundStore, daemon: ScriptedDaemon) -> None:
    one = await running(store)
    times = iter([0.0, 0.5, 1.1, 1.2, 1.3, 1.4])
    daemon.put(ROUTE, chunk("a"), chunk("b"), chunk("c"))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(one.receive(daemon, lambda: next(times)))
        await until(lambda: one.answer.content().text == "abc")
        again = await OpenChat.load(store, one.chat.session.session_id)
        kept = again.path[-1].content
        one.stop()
    assert (kept.text, kept.ending) == ("ab", "running")


async def test_a_message_that_was_deleted_is_not_kept(store: BackgroundStore) -> None:
    one = await running(store)
    assert one.message_id is not None
    await one.chat.remove(one.message_id)
    await one.keep()
    assert len((await OpenChat.load(store, one.chat.session.session_id)).path) == 1


async def test_it_says_how_far_it_is(store: BackgroundStore) -> None:
    one = await running(store)
    state = DaemonState()
    assert one.words(state, 3.0) == "◌ waiting for the first token  3 s – Esc stops it"
    state.requests = {
        one.request_id: Request(
            one.request_id, "guide", ROUTE, state="prefill", prompt_done=5, prompt_tokens=10
        )
    }
    assert one.words(state, 3.0) == f"◌ reading the prompt 5/10  {'■' * 10}{'·' * 10}  3 s – Esc stops it"
    assert "  ##########..........  " in one.words(state, 3.0, ascii_only=True)
    one.answer.feed(chunk("a"), 4.0)
    assert one.words(state, 5.0) == "● writing – Esc stops it"
