"""The chat screen: chats at the left, the conversation, and the prompt below it."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from functools import partial
from typing import Any, ClassVar, TypeVar

import msgspec
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from llmd_tui.screen import DaemonScreen
from llmd_tui.screens.chat import chat_actions, message_actions, session_actions
from llmd_tui.screens.chat.answers import Running
from llmd_tui.screens.chat.attachments import pasted
from llmd_tui.screens.chat.commands import ChatCommands
from llmd_tui.screens.chat.drafting import Drafting
from llmd_tui.screens.chat.generation_settings import changed
from llmd_tui.screens.chat.model_list import ChatModel, chat_models
from llmd_tui.screens.chat.open_chat import UNSAVED, OpenChat
from llmd_tui.screens.chat.prompt_history import PromptHistory
from llmd_tui.screens.chat.sending import Sending
from llmd_tui.screens.chat.slash_commands import parsed
from llmd_tui.screens.chat.store.background import BackgroundStore
from llmd_tui.screens.chat.store.chats import ChatStore
from llmd_tui.screens.chat.store.records import Attachment, Content, Message, Session, Settings
from llmd_tui.screens.chat.store.saved_files import SavedFiles
from llmd_tui.screens.chat.widgets.composer import Composer
from llmd_tui.screens.chat.widgets.conversation import Conversation
from llmd_tui.screens.chat.widgets.find_bar import FindBar
from llmd_tui.screens.chat.widgets.message_view import MessageView
from llmd_tui.screens.chat.widgets.prompt import Prompt
from llmd_tui.screens.chat.widgets.session_list import SessionList
from llmd_tui.state.daemon_state import DaemonState
from llmd_tui.widgets.dialog import Dialog

T = TypeVar("T")
QUESTIONS = 200
"""Earlier questions that the prompt can show again."""
PROGRESS_S = 0.5


class ChatScreen(DaemonScreen):
    """One chat is shown; others may go on in the background."""

    NAME = "chat"
    MANAGES = False
    CSS_PATH = "screen.tcss"
    FETCH_S = 10.0
    COMMANDS: ClassVar[set[Any]] = {ChatCommands}
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - as in its base
        (0, "-narrow"),
        (100, "-wide"),
    ]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop_answer", "Stop", id="chat.stop"),
        Binding("escape", "back", "Back", id="chat.back"),
        Binding("ctrl+n", "obey('new')", "New", id="chat.new"),
        Binding("ctrl+l", "sessions", "Chats", id="chat.sessions"),
        Binding("ctrl+o", "obey('model')", "Model", id="chat.model"),
        Binding("ctrl+s", "obey('set')", "Settings", id="chat.settings"),
        Binding("ctrl+r", "act_on_last('regenerate')", "Regenerate", id="chat.regenerate", show=False),
        Binding("ctrl+g", "obey('edit')", "Editor", id="chat.editor", show=False),
        Binding("slash", "obey('find')", "Find", id="chat.find", show=False),
    ]
    store: BackgroundStore
    saved: SavedFiles

    def __init__(self) -> None:
        super().__init__()
        self.models: list[ChatModel] = []
        self.sending = Sending(self)
        self.edited: Message | None = None
        """The message that the prompt holds another version of."""
        self.drafting = Drafting(self)
        self._is_ready = False
        self._obeying = asyncio.Lock()  # commands that follow each other quickly must not undo one another

    def compose_body(self) -> ComposeResult:
        yield SessionList(id="sessions")
        with Vertical(id="chat"):
            yield FindBar(id="find")
            yield Conversation(self.sending.growing, id="conversation")
            yield Composer(id="composer")

    def on_mount(self) -> None:
        folder, now = self.tui.folders.data, time.time
        self.store = BackgroundStore(partial(ChatStore.open, folder, now), partial(ChatStore.in_memory, now))
        self.saved = SavedFiles(folder / "conversations")
        settings = Settings(model=self.tui.preferences.model)
        self.chat = OpenChat(self.store, msgspec.structs.replace(UNSAVED, settings=settings))
        self.run_worker(self.told(self._begin()), group="open")
        self.set_interval(PROGRESS_S, self.drafting.show_progress)
        self.prompt.focus()

    async def on_unmount(self) -> None:
        await self.sending.end()
        await self.drafting.keep()
        self.store.close()

    async def fetch(self) -> None:
        before = self.window
        self.models = chat_models(await self.daemon.get("/v1/models"))
        self.composer.models = [one.name for one in self.models]
        if not self.chat.settings.model and self.models:
            self.chat.choose(changed(self.chat.settings, model=self.models[0].name))
        self.drafting.describe()
        if self.window != before:
            self.drafting.count()

    def show_state(self, state: DaemonState) -> None:
        if not self._is_ready:
            return
        wanted, self.tui.chat_wanted = self.tui.chat_wanted, ""
        if wanted:
            self.prompt.focus()
        if wanted and (wanted != self.chat.settings.model or not self.chat.is_empty):
            self.run_worker(self.told(self.open_new(Settings(model=wanted))), group="open")
        self.drafting.show_progress()

    @property
    def composer(self) -> Composer:
        return self.query_one(Composer)

    @property
    def prompt(self) -> Prompt:
        return self.composer.prompt

    @property
    def conversation(self) -> Conversation:
        return self.query_one(Conversation)

    @property
    def find_bar(self) -> FindBar:
        return self.query_one(FindBar)

    @property
    def window(self) -> int | None:
        """Length of the context of the chat's model, in tokens."""
        names = {one.name: one.window for one in self.models}
        return names.get(self.chat.settings.model)

    @property
    def running_id(self) -> int | None:
        """The message that is being written in this chat."""
        running = self.sending.running(self.chat)
        return running.message_id if running else None

    def say(self, text: str) -> None:
        """Tell the person something."""
        self.notify(text)

    async def ask(self, dialog: Dialog[T]) -> T | None:
        """Return the answer to a question; None if it was left. Only workers may wait for it."""
        return await self.app.push_screen_wait(dialog)

    def draft(self) -> Content | None:
        """The message that Enter would send."""
        return self.composer.draft()

    def attach(self, attachment: Attachment) -> None:
        """Send a text with the next message."""
        self.composer.attach(attachment)

    @work(group="obey")
    async def obey(self, name: str, argument: str = "") -> None:
        """Do what a slash command says."""
        act = chat_actions.ACTIONS.get(name)
        if act is None:
            self.say(f"There is no command /{name}; /help lists them.")
            return
        async with self._obeying:
            await self.told(act(self, argument))

    @work(group="obey")
    async def act_on(self, name: str, message_id: int) -> None:
        """Do something with a message."""
        if message_id in self.chat.tree:
            await self.told(message_actions.ACTIONS[name](self, self.chat.tree[message_id]))

    def act_on_last(self, name: str) -> None:
        """Do something with the last message."""
        if self.chat.tree.leaf is not None:
            self.act_on(name, self.chat.tree.leaf)

    @work(group="obey")
    async def act_on_session(self, name: str, session: Session | None = None) -> None:
        """Do something with a chat, by default with the shown one."""
        chosen = session or self.chat.session
        if chosen.session_id:
            await self.told(session_actions.ACTIONS[name](self, chosen))

    def stop(self) -> bool:
        """End the answer of this chat; return whether one was being written."""
        return self.sending.stop(self.chat.session.session_id)

    action_stop_answer = stop

    def cancel(self) -> bool:
        """Copy what is selected in the prompt, or stop the answer: what Ctrl-C does first."""
        if self.prompt.has_focus and self.prompt.selected_text:
            self.tui.copy(self.prompt.selected_text, "the selection")
            return True
        return self.stop()

    def answer(self, parent: int, continued: Message | None = None) -> None:
        """Have a question answered, or an answer continued."""
        self.sending.answer(self.chat, parent, continued)

    async def open_new(self, settings: Settings | None = None) -> None:
        """Begin a chat; without settings, with the model of this one."""
        chosen = settings or Settings(model=self.chat.settings.model)
        await self.open(OpenChat(self.store, msgspec.structs.replace(UNSAVED, settings=chosen)))

    async def open(self, chat: OpenChat) -> None:
        """Show a chat, with its draft."""
        self.drafting.changed()
        await self.drafting.keep()
        self.edited = None
        self.chat = self.sending.chat(chat.session.session_id) or chat
        self.composer.clear()
        self.prompt.write(self.chat.session.draft)
        self.drafting.begin(self.chat.session.draft)
        await self.show_chat()
        self.conversation.go_to_end()
        await self.list_sessions()
        self.prompt.focus()

    async def show_chat(self) -> None:
        """Show the messages of the chat as they are now."""
        focused = self.focused
        await self.conversation.show(self.chat.tree, self.chat.session.first_sent)
        if isinstance(focused, MessageView) and not focused.is_attached:
            self.conversation.focus_last()
        self.drafting.describe()
        self.drafting.show_progress()
        self.drafting.count()

    async def show_end(self, running: Running) -> None:
        """Show that an answer has ended."""
        if not self.query(Conversation):
            return  # the interface ends
        if running.chat is self.chat:
            if running.message_id is not None:
                await self.conversation.finish(running.message_id, running.answer.content())
            self.drafting.show_progress()
            self.drafting.count()
            self.begin_fetch()  # the model may have been loaded for this answer, with a window of its own
        await self.list_sessions()

    async def set_settings(self, settings: Settings) -> None:
        """Use other settings from the next message on."""
        await self.chat.change(settings=settings)
        self.drafting.describe()
        self.drafting.count()

    async def list_sessions(self) -> None:
        """Show the list of chats as it is now."""
        listed = self.query_one(SessionList)
        found = await self.store.call(ChatStore.sessions, search=listed.searched, archived=listed.archived)
        today = datetime.now(UTC).astimezone().date()
        listed.show(found, today, self.chat.session.session_id)

    @on(Prompt.Left)
    def focus_messages(self) -> None:
        """Put the cursor on the last message; without one, on nothing, so that digits open screens."""
        if self.chat.is_empty:
            self.set_focus(None)
        else:
            self.conversation.focus_last()

    def action_obey(self, name: str) -> None:
        self.obey(name)

    def action_act_on_last(self, name: str) -> None:
        self.act_on_last(name)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Let Esc stop an answer that is being written, unless it first leaves the search or the chats."""
        if action == "back" and self._is_ready:
            return not self.prompt.has_focus or self.find_bar.display or bool(self.edited)
        if action != "stop_answer":
            return super().check_action(action, parameters)
        searches = any(one.display for one in self.query(FindBar))
        aside = searches or any(one.has_focus_within for one in self.query(SessionList))
        return self._is_ready and self.sending.can_stop(self.chat) and not aside

    def action_back(self) -> None:
        """Leave what is open, or go back to the prompt."""
        # It never leaves the prompt: pressed when an answer has just ended, it would turn words into keys.
        if self.find_bar.display:
            self.find_bar.display = False
            self.query(MessageView).remove_class("found")
            self.prompt.focus()
        elif self.query_one(SessionList).has_focus_within:
            if self.has_class("-narrow"):
                self._show_list(shown=False)
            self.prompt.focus()
        elif self.edited is not None:
            self.edited = None
            self.composer.clear()
        else:
            self.prompt.focus()

    def action_sessions(self) -> None:
        """Go to the list of chats; from there, hide it."""
        listed = self.query_one(SessionList)
        if listed.display and listed.has_focus_within:
            self._show_list(shown=False)
            self.prompt.focus()
        else:
            self._show_list(shown=True)
            listed.focus_list()

    @on(Prompt.Sent)
    def take(self, event: Prompt.Sent) -> None:
        """Send a message, or do what a command says."""
        command = parsed(event.text)
        if command is None:
            self.send(event.text)
            return
        self.obey(*command)

    @work(group="send")
    async def send(self, text: str) -> None:
        """Send a question after the last message, or in place of the one that is edited."""
        content = Content(text.strip(), attachments=self.composer.attachments)
        parent = self.edited.parent if self.edited else self.chat.tree.leaf
        if await self.told(self.sending.send(content, parent)):
            self.edited = None
        else:
            self.prompt.give_back(text)

    @on(Prompt.LongPaste)
    def attach_paste(self, event: Prompt.LongPaste) -> None:
        attachment = pasted(event.text, len(self.composer.attachments))
        if attachment is not None:
            self.attach(attachment)

    @on(Composer.Changed)
    def draft_changed(self) -> None:
        if self._is_ready:
            self.drafting.changed()

    @on(SessionList.Refreshed)
    async def refresh_list(self) -> None:
        await self.told(self.list_sessions())

    @on(SessionList.Opened)
    async def open_session(self, event: SessionList.Opened) -> None:
        if self.has_class("-narrow"):
            self._show_list(shown=False)
        if event.session_id != self.chat.session.session_id:
            await self.told(self._open_session(event.session_id))
        self.prompt.focus()

    @on(SessionList.Wanted)
    def want_of_session(self, event: SessionList.Wanted) -> None:
        self.act_on_session(event.action, event.session)

    @on(MessageView.Wanted)
    def want_of_message(self, event: MessageView.Wanted) -> None:
        self.act_on(event.action, event.message_id)

    @on(Conversation.Left)
    def back_to_prompt(self) -> None:
        self.prompt.focus()

    @on(FindBar.Stepped)
    async def find_next(self, event: FindBar.Stepped) -> None:
        found = self.find_bar.found(self.chat.path, event.step)
        if found is not None:
            await self.conversation.reveal(found, found=True)

    async def _begin(self) -> None:
        """Show the chat that has a draft, or a new one."""
        if failure := await self.store.failure():
            self.notify(f"{failure}. Chats are not kept.", severity="error", timeout=20)
        if drafted := await OpenChat.with_draft(self.store):
            await self.open(drafted)
        self.prompt.asked = PromptHistory(await self.store.call(ChatStore.questions, QUESTIONS))
        self.composer.saved = await asyncio.to_thread(self.saved.names)
        await self.list_sessions()
        self.drafting.describe()
        self._is_ready = True
        self.refresh_bindings()
        self.show_state(self.tui.state)

    async def _open_session(self, session_id: int) -> None:
        await self.open(await OpenChat.load(self.store, session_id))

    def _show_list(self, *, shown: bool) -> None:
        narrow = self.has_class("-narrow")
        self.set_class(shown and narrow, "show-sessions")
        self.set_class(not shown and not narrow, "hide-sessions")
