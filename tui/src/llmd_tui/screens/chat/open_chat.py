"""A chat that is open: its messages as a tree, and every change at once on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from llmd_tui.screens.chat.store.background import BackgroundStore
from llmd_tui.screens.chat.store.chats import ChatStore
from llmd_tui.screens.chat.store.records import Content, Message, Role, Session, Settings
from llmd_tui.screens.chat.store.saved_files import Saved
from llmd_tui.screens.chat.tree import Tree

TITLE_LEN = 60
UNSAVED = Session(0)


class OpenChat:
    """A new chat is not in the store until there is something to keep. Changes may raise `LlmdError`."""

    def __init__(self, store: BackgroundStore, session: Session, tree: Tree | None = None) -> None:
        self._store = store
        self.session = session
        self.tree = tree or Tree()
        self._making = asyncio.Lock()  # a draft and a message may be kept at the same time

    @classmethod
    async def load(cls, store: BackgroundStore, session_id: int) -> OpenChat:
        """Open a chat of the store."""
        session = await store.call(ChatStore.session, session_id)
        messages = await store.call(ChatStore.messages, session_id)
        return cls(store, session, Tree(messages, session.leaf))

    @classmethod
    async def with_draft(cls, store: BackgroundStore) -> OpenChat | None:
        """Open the newest chat if it has a draft."""
        sessions = await store.call(ChatStore.sessions)
        newest = max(sessions, key=lambda one: one.updated, default=None)
        return await cls.load(store, newest.session_id) if newest is not None and newest.draft else None

    @classmethod
    async def restore(cls, store: BackgroundStore, saved: Saved, name: str) -> OpenChat:
        """Begin a chat with a conversation that ``llmd chat`` saved."""
        chat = cls(store, await store.call(ChatStore.create, saved.chat_settings(), name))
        for turn in saved.turns:
            await chat.add("user", Content(turn.question), chat.tree.leaf)
            await chat.add("assistant", Content(turn.answer), chat.tree.leaf)
        return chat

    @property
    def settings(self) -> Settings:
        return self.session.settings

    @property
    def path(self) -> Sequence[Message]:
        """The branch that is shown."""
        return self.tree.path()

    @property
    def is_empty(self) -> bool:
        return not len(self.tree)

    async def add(self, role: Role, content: Content, parent: int | None) -> Message:
        """Add a message after another one, and show its branch; the first question becomes the title."""
        session_id = await self._kept()
        message = await self._store.call(ChatStore.add, session_id, parent, role, content)
        self.tree.add(message)
        if not self.session.title:
            await self.change(title=_title(content))
        return message

    async def update(self, message_id: int, content: Content) -> None:
        """Replace what a message says."""
        self.tree.replace(message_id, content)
        await self._store.call(ChatStore.update, message_id, content)

    async def turn_to(self, message_id: int, step: int) -> bool:
        """Show the branch of the next or previous sibling; return whether there is one."""
        leaf = self.tree.turn_to(message_id, step)
        if leaf is not None:
            await self._store.call(ChatStore.change, await self._kept(), leaf=leaf)
        return leaf is not None

    async def remove(self, message_id: int) -> None:
        """Delete a message with all that follows it."""
        leaf = self.tree.remove(message_id)
        await self._store.call(ChatStore.remove, message_id)
        await self._store.call(ChatStore.change, await self._kept(), leaf=leaf)

    async def change(self, **changes: Any) -> None:
        """Change fields of the session."""
        self.session = msgspec.structs.replace(self.session, **changes)
        if self.session.session_id or any(changes.values()):
            await self._store.call(ChatStore.change, await self._kept(), **changes)

    def choose(self, settings: Settings) -> None:
        """Change the settings of a chat that need not be kept yet."""
        self.session = msgspec.structs.replace(self.session, settings=settings)

    async def _kept(self) -> int:
        """Return the id of the session; it is made now if there is none yet."""
        async with self._making:
            if not self.session.session_id:
                made = await self._store.call(ChatStore.create, self.settings)
                self.session = msgspec.structs.replace(
                    self.session, session_id=made.session_id, created=made.created, updated=made.updated
                )
            return self.session.session_id


def _title(content: Content) -> str:
    names = ", ".join(one.name for one in content.attachments)
    line = next((line.strip() for line in content.text.splitlines() if line.strip()), names)
    return line if len(line) <= TITLE_LEN else f"{line[: TITLE_LEN - 1]}…"
