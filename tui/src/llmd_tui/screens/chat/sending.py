"""Sends questions to the daemon and receives the answers, of all open chats."""

from __future__ import annotations

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


class Sending:
    """A chat that is left while its answer is written goes on."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self._running: list[Running] = []
        self._is_sending = False

    def running(self, chat: OpenChat) -> Running | None:
        """Return the answer that is being written in a chat."""
        return next((one for one in self._running if one.chat is chat), None)

    def chat(self, session_id: int) -> OpenChat | None:
        """Return the chat of that session if its answer is being written."""
        return next((one.chat for one in self._running if one.chat.session.session_id == session_id), None)

    async def send(self, content: Content, parent: int | None) -> bool:
        """Add a question to the shown chat and have it answered; return whether that was possible."""
        screen, chat = self._screen, self._screen.chat
        if self._is_sending or self.running(chat):
            screen.say("An answer is being written. Esc stops it.")
            return False
        self._is_sending = True
        try:
            if not chat.settings.model:
                await choose_model(screen)
            if not chat.settings.model or not await self._fits(chat, content):
                return False
            question = await chat.add("user", content, parent)
            screen.composer.clear_attachments()
            await chat.change(draft="")
        finally:
            self._is_sending = False
        await self.answer(chat, question.message_id)
        return True

    async def answer(self, chat: OpenChat, parent: int, continued: Message | None = None) -> None:
        """Have the branch that ends with ``parent`` answered, in a new message or at the end of an answer."""
        screen = self._screen
        if self.running(chat):
            screen.say("An answer is being written. Esc stops it.")
            return
        settings, path = chat.settings, chat.tree.path(parent)
        body = streamed(chat_body(settings, path, first=chat.session.first_sent))
        before = continued.content if continued else Content()
        message = continued or await chat.add("assistant", Content(ending="running"), parent)
        now = screen.tui.clock()
        answer = Answer(now, model=settings.model, seed=settings.seed, window=screen.window, before=before)
        running = Running(chat, message.message_id, answer, body, now)
        self._running.append(running)
        screen.refresh_bindings()  # Esc stops it
        await screen.show_chat()  # first, so that an answer that comes at once finds its place
        screen.conversation.go_to_end()
        receive = partial(self._receive, running)
        screen.run_worker(receive, group="answers")  # type: ignore[arg-type] # mypy infers Never
        await screen.list_sessions()

    def stop(self, session_id: int) -> bool:
        """End the answer of a chat; return whether one was being written."""
        found = [one for one in self._running if one.chat.session.session_id == session_id]
        for running in found:
            running.stop()
        return bool(found)

    async def end(self) -> None:
        """End all requests and keep what has arrived."""
        for running in list(self._running):
            running.stop()
            running.answer.stop()
            await running.keep()

    async def _receive(self, running: Running) -> None:
        screen = self._screen
        await running.receive(screen.daemon, screen.tui.clock)
        self._running.remove(running)
        screen.refresh_bindings()
        try:
            await running.keep()
            if screen.is_running:
                await screen.show_end(running)
        except LlmdError as error:
            screen.tui.show_failure(error)

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
