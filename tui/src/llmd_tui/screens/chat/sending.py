"""Sends questions to the daemon and receives the answers, of all open chats."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from llmd.api.errors import LlmdError
from llmd_tui.screens.chat import counting
from llmd_tui.screens.chat.answer import Answer
from llmd_tui.screens.chat.answers import Running
from llmd_tui.screens.chat.chat_actions import model as choose_model
from llmd_tui.screens.chat.open_chat import OpenChat
from llmd_tui.screens.chat.request_body import chat_body, sent, streamed
from llmd_tui.screens.chat.store.records import Content, Message
from llmd_tui.screens.chat.widgets.dialogs import Confirm

if TYPE_CHECKING:
    from llmd_tui.screens.chat.screen import ChatScreen

WRITING = "An answer is being written. Esc stops it."


class Sending:
    """A chat that is left while its answer is written goes on."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self._running: list[Running] = []
        self._sent_from: OpenChat | None = None
        """The chat whose question is being sent."""
        self._stop_wanted = asyncio.Event()
        """Set if a person wants to stop the question that is being sent."""

    def running(self, chat: OpenChat) -> Running | None:
        """Return the answer that is being written in a chat."""
        return next((one for one in self._running if one.chat is chat), None)

    def chat(self, session_id: int) -> OpenChat | None:
        """Return the chat of that session if its answer is being written."""
        return next((one.chat for one in self._running if one.chat.session.session_id == session_id), None)

    def growing(self, message_id: int) -> Callable[[], Content] | None:
        """Return what says how far the answer in a message is; None if it is not being written."""
        return next((one.answer.content for one in self._running if one.message_id == message_id), None)

    async def send(self, content: Content, parent: int | None) -> bool:
        """Add a question to the shown chat and have it answered; return whether that was possible."""
        screen, chat = self._screen, self._screen.chat
        if self._sent_from is not None or self.running(chat):
            screen.say(WRITING)
            return False
        self._sent_from = chat
        self._stop_wanted.clear()
        screen.refresh_bindings()
        try:
            if not chat.settings.model:
                await choose_model(screen)
            if not chat.settings.model or not await self._fits(chat, content):
                return False
            if self._stop_wanted.is_set():
                return False
            question = await chat.add("user", content, parent)
            screen.composer.clear_attachments()
            await chat.change(draft="")
            self.answer(chat, question.message_id)
            if self._stop_wanted.is_set():
                self.stop(chat.session.session_id)
        finally:
            self._sent_from = None
            screen.refresh_bindings()
        return True

    def answer(self, chat: OpenChat, parent: int, continued: Message | None = None) -> None:
        """Have the branch that ends with ``parent`` answered, in a new message or at the end of an answer."""
        screen, settings = self._screen, chat.settings
        if self.running(chat):
            screen.say(WRITING)
            return
        body = streamed(chat_body(settings, chat.tree.path(parent), first=chat.session.first_sent))
        before = continued.content if continued else Content()
        now = screen.tui.clock()
        answer = Answer(now, model=settings.model, seed=settings.seed, window=screen.window, before=before)
        running = Running(chat, answer, body, now)
        # From now on it can be stopped, and no other answer can begin.
        self._running.append(running)
        screen.refresh_bindings()
        write = partial(self._write, running, parent, continued)
        screen.run_worker(write, group="answers")  # type: ignore[arg-type] # mypy infers Never

    def can_stop(self, chat: OpenChat) -> bool:
        """Return whether a question of a chat is being sent or its answer written."""
        return self._sent_from is chat or self.running(chat) is not None

    def stop(self, session_id: int) -> bool:
        """End the answer of a chat; return whether one was being written or a question was being sent."""
        found = [one for one in self._running if one.chat.session.session_id == session_id]
        for running in found:
            running.stop()
        is_sending = self._sent_from is not None and self._sent_from.session.session_id == session_id
        if is_sending:
            self._stop_wanted.set()
        return bool(found) or is_sending

    async def end(self) -> None:
        """End all requests and keep what has arrived."""
        for running in list(self._running):
            running.stop()
            running.answer.stop()
            await running.keep()

    async def _write(self, running: Running, parent: int, continued: Message | None) -> None:
        """Show an answer from its beginning to its end."""
        screen, chat = self._screen, running.chat
        try:
            message = continued or await chat.add("assistant", Content(ending="running"), parent)
            running.message_id = message.message_id
            if chat is screen.chat:
                await screen.show_chat()  # first, so that an answer that comes at once finds its place
                screen.conversation.go_to_end()
            await screen.list_sessions()
            await running.receive(screen.daemon, screen.tui.clock)
            await running.keep()
        except LlmdError as error:
            screen.tui.show_failure(error)
        finally:
            self._running.remove(running)
            screen.refresh_bindings()
        if screen.is_running:
            await screen.told(screen.show_end(running))

    async def _fits(self, chat: OpenChat, content: Content) -> bool:
        """Return whether there is room for the question; offer to drop the oldest turns if there is not."""
        screen, window = self._screen, self._screen.window
        try:
            room = await counting.room(screen.daemon, chat, content, window)
            if window is None or not room.is_over:
                return True
            first = await counting.shortened(screen.daemon, chat, content, window)
            if first is None or await self._alone(content) >= window:
                screen.say(
                    f"This message alone has {room.used} tokens, the context holds {window}: shorten it."
                )
                return False
        except LlmdError:
            return True  # the answer will say what is wrong
        kept = sent(chat.path, first)
        turns = sum(one.role == "user" for one in sent(chat.path, chat.session.first_sent))
        dropped = turns - sum(one.role == "user" for one in kept)
        oldest = "oldest turn" if dropped == 1 else f"{dropped} oldest turns"
        question = (
            f"The conversation with this message has {room.used} tokens, and the context holds {window}. "
            f"Send it without the {oldest} of {turns}? They stay visible here."
        )
        if not await screen.ask(Confirm("The context is full", question)):
            return False
        await chat.change(first_sent=first)
        return True

    async def _alone(self, content: Content) -> int:
        """Return the tokens of a question with nothing before it but the system prompt."""
        screen = self._screen
        return await counting.count(screen.daemon, chat_body(screen.chat.settings, [], draft=content))
