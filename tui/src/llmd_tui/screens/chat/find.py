"""Finds words in the messages of a branch."""

from __future__ import annotations

from collections.abc import Sequence

from llmd_tui.screens.chat.store.records import Message


class Finder:
    """The messages of a search; each `step` goes to the next one, at the end to the first one again."""

    def __init__(self, path: Sequence[Message], words: str) -> None:
        self._asked = ([one.message_id for one in path], words)
        wanted = words.lower().split()
        self.found = [one.message_id for one in path if _has(one, wanted)] if wanted else []
        self._place = len(self.found)

    def is_of(self, path: Sequence[Message], words: str) -> bool:
        """Whether this is the search for these words in this branch."""
        return self._asked == ([one.message_id for one in path], words)

    def step(self, step: int = -1) -> int | None:
        """Return another message with all the words, by default the next older one; None if there is none."""
        if not self.found:
            return None
        self._place = (self._place + step) % len(self.found)
        return self.found[self._place]

    @property
    def words(self) -> str:
        """Say which of the found messages is shown."""
        if not self.found:
            return "nothing found"
        return f"{self._place % len(self.found) + 1} of {len(self.found)}"


def _has(message: Message, wanted: Sequence[str]) -> bool:
    content = message.content
    text = "\n".join([content.text, content.reasoning, *(one.text for one in content.attachments)]).lower()
    return all(word in text for word in wanted)
