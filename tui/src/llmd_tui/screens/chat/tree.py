"""The messages of a chat as a tree: an edited message and another answer are siblings of the first one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from llmd_tui.screens.chat.store.records import Content, Message


class Tree:
    """Messages, and which branch of them is shown: the one that ends with ``leaf``. None: there is none."""

    def __init__(self, messages: Iterable[Message] = (), leaf: int | None = None) -> None:
        self._messages: dict[int, Message] = {}
        self._children: defaultdict[int | None, list[int]] = defaultdict(list)
        for message in messages:
            self._insert(message)
        known = leaf if leaf in self._messages else max(self._messages, default=None)
        self.leaf = known

    def __getitem__(self, message_id: int) -> Message:
        return self._messages[message_id]

    def __contains__(self, message_id: int) -> bool:
        return message_id in self._messages

    def __len__(self) -> int:
        return len(self._messages)

    def path(self, leaf: int | None = None) -> list[Message]:
        """Return the messages from the first one to ``leaf``; by default the branch that is shown."""
        found, place = [], self.leaf if leaf is None else leaf
        while place is not None:
            found.append(self._messages[place])
            place = self._messages[place].parent
        return found[::-1]

    def siblings(self, message_id: int) -> list[int]:
        """Return the messages that follow the same one as this, with this one, oldest first."""
        return self._children[self._messages[message_id].parent]

    def place(self, message_id: int) -> tuple[int, int]:
        """Return the place of a message among its siblings, from one, and their number."""
        siblings = self.siblings(message_id)
        return siblings.index(message_id) + 1, len(siblings)

    def add(self, message: Message) -> None:
        """Add a message and show its branch."""
        self._insert(message)
        self.leaf = message.message_id

    def replace(self, message_id: int, content: Content) -> None:
        """Change what a message says."""
        old = self._messages[message_id]
        self._messages[message_id] = Message(old.message_id, old.parent, old.role, content)

    def turn_to(self, message_id: int, step: int) -> int | None:
        """Show the branch of the next or previous sibling, to its newest message, and return the new leaf.

        None: there is no such sibling.
        """
        siblings = self.siblings(message_id)
        place = siblings.index(message_id) + step
        if not 0 <= place < len(siblings):
            return None
        self.leaf = self._newest_below(siblings[place])
        return self.leaf

    def remove(self, message_id: int) -> int | None:
        """Remove a message with all that follows it, show what is left next to it; return the new leaf."""
        removed = self._messages[message_id]
        was_shown = message_id in {one.message_id for one in self.path()}
        for one in self._below(message_id):
            self._messages.pop(one)
            self._children.pop(one, None)
        siblings = self._children[removed.parent]
        place = siblings.index(message_id)
        siblings.remove(message_id)
        if was_shown:
            self.leaf = self._newest_below(siblings[max(place - 1, 0)]) if siblings else removed.parent
        return self.leaf

    def _insert(self, message: Message) -> None:
        self._messages[message.message_id] = message
        self._children[message.parent].append(message.message_id)

    def _newest_below(self, message_id: int) -> int:
        while children := self._children.get(message_id):
            message_id = children[-1]
        return message_id

    def _below(self, message_id: int) -> list[int]:
        """Return a message and all that follow it."""
        found = [message_id]
        for one in found:
            found.extend(self._children.get(one, ()))
        return found
