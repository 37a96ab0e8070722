"""Drives the chat on a screen over a scripted daemon."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.screen import Screen

from llmd_tui.app import LlmdTui
from llmd_tui.screens.chat.request_body import COUNT_ROUTE, ROUTE
from llmd_tui.screens.chat.screen import ChatScreen
from llmd_tui.screens.chat.store.background import BackgroundStore
from llmd_tui.screens.chat.store.chats import ChatStore
from llmd_tui.screens.chat.widgets.line import Line
from llmd_tui.screens.chat.widgets.message_view import MessageView
from tests.tui.conftest import MakeTui, turns
from tests.tui.scripted_daemon import ScriptedDaemon

TRIES = 300


@pytest.fixture(autouse=True)
def _databases_end_with_the_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close what tests opened to look into it: Python 3.13 warns of databases that nobody closed."""
    connect = sqlite3.connect
    with contextlib.ExitStack() as opened:

        def connected(*arguments: Any, **options: Any) -> sqlite3.Connection:
            connection: sqlite3.Connection = connect(*arguments, **options)
            return opened.enter_context(contextlib.closing(connection))

        monkeypatch.setattr(sqlite3, "connect", connected)
        yield


def chunk(text: str = "", finish: str | None = None, **delta: Any) -> dict[str, Any]:
    """A piece of an answer."""
    content = {"content": text} if text else {}
    return {"model": "guide", "choices": [{"delta": content | delta, "finish_reason": finish}], "usage": None}


def usage(prompt: int = 8, completion: int = 4, cached: int = 6) -> dict[str, Any]:
    """The last piece of an answer."""
    counted = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    return {"model": "guide", "choices": [], "usage": counted}


def whole(*texts: str) -> tuple[dict[str, Any] | None, ...]:
    """A whole answer."""
    return (*(chunk(text) for text in texts), chunk("", "stop"), usage(), None)


async def until(condition: Callable[[], object]) -> None:
    """Let other tasks run until something is so."""
    for _ in range(TRIES * 1000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("not so after many tries")


class PatientPilot(Pilot[None]):
    """Waits after each key for the focus or the dialog that it asks for.

    Textual takes a process for idle that uses no processor time, as one on a busy machine does too.
    """

    async def press(self, *keys: str) -> None:
        for key in keys:
            await super().press(key)
            await turns()


class Chat:
    """The chat screen of a running interface."""

    def __init__(self, pilot: Pilot[None], daemon: ScriptedDaemon) -> None:
        self.pilot = PatientPilot(pilot.app)
        self.daemon = daemon

    @property
    def tui(self) -> LlmdTui:
        assert isinstance(self.pilot.app, LlmdTui)
        return self.pilot.app

    @property
    def screen(self) -> ChatScreen:
        screen = self.tui.screen_stack[0]
        assert isinstance(screen, ChatScreen)
        return screen

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The requests for answers."""
        return [dict(body) for path, body in self.daemon.asked if path == ROUTE]

    @property
    def texts(self) -> list[str]:
        """The texts of the shown messages."""
        return [view.content.text for view in self.screen.conversation.views]

    @property
    def notices(self) -> list[str]:
        """What the interface has said."""
        return [notice.message for notice in self.tui._notifications]

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until something is so."""
        for _ in range(TRIES):
            if condition():
                return
            await self.pilot.pause()
        raise AssertionError(f"not so after {TRIES} tries; messages {self.texts}, notices {self.notices}")

    async def until_open(self, dialog: type[Screen[Any]]) -> None:
        """Wait until a dialog of that kind takes keys."""

        def is_open() -> bool:
            screen = self.tui.screen
            is_ready = isinstance(screen, dialog) and screen.is_mounted
            return is_ready and (screen.focused is not None or not screen.focus_chain)

        await self.until(is_open)

    async def until_closed(self) -> None:
        """Wait until no dialog covers the chat."""
        await self.until(lambda: self.tui.screen is self.screen)

    async def settle(self) -> None:
        """Wait until no answer is being written and everything is shown."""
        groups = {"answers", "obey", "send", "open", "draft", "keep"}
        await self.until(
            lambda: all(worker.is_finished for worker in self.tui.workers if worker.group in groups)
        )
        await self.pilot.pause()

    async def type(self, text: str, *keys: str) -> None:
        """Write into the prompt and press keys, once no dialog covers it."""
        await self.until_closed()
        self.screen.prompt.focus()
        await self.until(lambda: self.screen.prompt.has_focus)
        self.screen.prompt.write(text)
        await self.pilot.press(*(keys or ("enter",)))

    async def ask(self, text: str, *answer: str) -> None:
        """Send a question and wait for its answer."""
        asked = len(self.bodies)
        self.daemon.put(ROUTE, *whole(*(answer or (f"answer to {text}",))))
        await self.type(text)
        await self.until(lambda: len(self.bodies) > asked)
        await self.settle()

    def view(self, place: int) -> MessageView:
        """A shown message, from the end if negative."""
        return self.screen.conversation.views[place]

    def line(self, place: int, name: str) -> str:
        """A line of a shown message; empty if the message is not shown yet."""
        if not self.screen.conversation.views:
            return ""
        line = self.view(place).query_one(f".{name}", Line)
        return str(line.content) if line.display else ""


OpenChatScreen = Callable[..., AbstractAsyncContextManager[Chat]]


@pytest.fixture
def chat(daemon: ScriptedDaemon, make_tui: MakeTui, monkeypatch: pytest.MonkeyPatch) -> OpenChatScreen:
    """Return a function that opens the chat with the model ``guide``, whose context has 100 tokens."""
    monkeypatch.setattr("llmd_tui.screens.chat.drafting.COUNT_AFTER_S", 0.0)
    monkeypatch.setattr("llmd_tui.screens.chat.drafting.KEEP_AFTER_S", 0.0)
    daemon.gets["/v1/models"] = {
        "data": [
            {"id": "guide", "max_model_len": 100, "status": "loaded"},
            {"id": "other", "max_model_len": None, "status": "unloaded"},
        ]
    }
    daemon.posts[COUNT_ROUTE] = {"input_tokens": 12}

    @asynccontextmanager
    async def opened(size: tuple[int, int] = (120, 40), **options: Any) -> AsyncIterator[Chat]:
        async with make_tui(ChatScreen, first="chat", **options).run_test(size=size) as pilot:
            driver = Chat(pilot, daemon)
            await driver.until(lambda: driver.screen._is_ready and driver.screen.models)
            yield driver

    return opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The data folder of the interface."""
    return tmp_path / "data"


@pytest.fixture
def store() -> Iterator[BackgroundStore]:
    """A store without an interface."""

    def opened() -> ChatStore:
        return ChatStore.in_memory(lambda: 1000.0)

    made = BackgroundStore(opened, opened)
    yield made
    made.close()
