"""Match stop strings on text, independently of token boundaries."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from llmd.api.errors import RequestError


class StopResult(msgspec.Struct, frozen=True):
    """Text that may be sent, and whether a stop string ended the answer."""

    text: str
    stop: str | None = None
    """The stop string that ended the answer; ``text`` does not contain it."""


class StopStringMatcher:
    """Holds back the longest suffix of the text that may become a stop string, and releases the rest.

    The match that completes first wins; of several that end at the same character, the longest. So the result
    does not depend on how the text is split. Source: Knuth, Morris & Pratt 1977, "Fast pattern matching in
    strings": each character costs constant time per stop string, whatever its length.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        """Raise `RequestError` for an empty stop string, which would end every answer at once."""
        if "" in stops:
            raise RequestError("a stop string is empty", param="stop", hint="leave it out")
        self._patterns = [_Pattern(stop) for stop in sorted(set(stops), key=len, reverse=True)]
        self._held = ""

    def feed(self, text: str) -> StopResult:
        """Read the next piece of text. Do not call it after a match."""
        for place, char in enumerate(text):
            complete = [pattern for pattern in self._patterns if pattern.advance(char)]
            if complete:
                stop = complete[0].text
                seen = self._held + text[: place + 1]
                self._held = ""
                return StopResult(seen[: -len(stop)], stop)
        seen = self._held + text
        keep = max((pattern.matched_len for pattern in self._patterns), default=0)
        self._held = seen[len(seen) - keep :]
        return StopResult(seen[: len(seen) - keep])

    def finish(self) -> str:
        """Return the text held back and start matching from the beginning."""
        held, self._held = self._held, ""
        for pattern in self._patterns:
            pattern.matched_len = 0
        return held


class _Pattern:
    """Tracks how much of one stop string the text ends with."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.matched_len = 0
        # borders[n]: the longest proper prefix of text[:n] that is also its suffix.
        self._borders = [0] * (len(text) + 1)
        border = 0
        for place in range(1, len(text)):
            border = self._extend(border, text[place])
            self._borders[place + 1] = border

    def advance(self, char: str) -> bool:
        """Read one character; return whether the stop string is now complete."""
        self.matched_len = self._extend(self.matched_len, char)
        return self.matched_len == len(self.text)

    def _extend(self, matched_len: int, char: str) -> int:
        while matched_len and self.text[matched_len] != char:
            matched_len = self._borders[matched_len]
        return matched_len + 1 if self.text[matched_len] == char else 0
