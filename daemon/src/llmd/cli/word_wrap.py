"""Breaks the lines of a text between words while the text comes, as wide as a terminal is at that moment."""

from __future__ import annotations

import re
from collections.abc import Callable
from unicodedata import category, east_asian_width

ZERO_WIDTH_JOINER = "\u200d"
SKIN_TONES = range(0x1F3FB, 0x1F400)
HANGUL = range(0xAC00, 0xD7A4)  # Korean has spaces between words
# Of Chinese and Japanese punctuation: what never begins a line, and what never ends one.
NOT_FIRST = frozenset("、。，．・：；！？」』）】》〉〕］｝ー…")
NOT_LAST = frozenset("「『（【《〈〔［｛")
FENCE = re.compile(r"(`{3,}|~{3,})[^`]*")
LIST_MARKER = re.compile(r"[-*+]|\d{1,9}[.)]")
CODE_INDENT = 4


class WordWrap:
    """Takes a text in pieces and returns what to show of it; a word is held back until it is complete.

    Code, in fences or indented, is left as it is. A word that is wider than the terminal is, too: the terminal breaks it,
    and it can still be copied as one.
    """

    def __init__(self, width: Callable[[], int]) -> None:
        """``width`` is asked at each word: a terminal may be resized meanwhile."""
        self._width = width
        self._column = 0  # cells of the row that the cursor is on
        self._spaces = ""  # between the last word and the next
        self._word = ""  # not shown yet
        self._at_line_start = True  # no word of this line has been shown
        self._is_verbatim = False  # this line is left as it is
        self._is_split = False  # the beginning of this word has been shown
        self._fence = ""  # what opened the code that the text is in

    def feed(self, text: str) -> str:
        """Take the next piece; returns what can be shown by now."""
        return "".join(map(self._take, text))

    def flush(self) -> str:
        """The word that was held back, now that the text has ended."""
        return self._end_word()

    def _take(self, char: str) -> str:
        if char == "\n":
            return self._end_line()
        is_space = char in " \t"
        ends_word = is_space or (self._word and may_break(self._word[-1], char))
        shown = self._end_word() if ends_word else ""
        if self._is_verbatim and not self._at_line_start:
            return shown + char
        if is_space:
            self._spaces += char
            return shown
        self._word += char
        if self._is_split or cells(self._word) > self._width():
            shown += self._show_word()
            self._is_split = True
        return shown

    def _end_line(self) -> str:
        shown = self._end_word()
        self._column, self._spaces = 0, ""
        self._at_line_start, self._is_verbatim = True, False
        return f"{shown}\n"

    def _end_word(self) -> str:
        shown = self._show_word() if self._word else ""
        self._is_split = False
        return shown

    def _show_word(self) -> str:
        """The word with the spaces before it, on the next row where this one has no room."""
        word, spaces = self._word, self._spaces
        if self._at_line_start:
            self._is_verbatim = self._begins_code(spaces, word)
        is_first, self._at_line_start = self._at_line_start, False
        self._word = self._spaces = ""
        if self._is_verbatim:
            return spaces + word
        width, size = self._width(), cells(word)
        before = _on_row(self._column, width)  # a terminal that became narrower has broken the row itself
        after = len((" " * before + spaces).expandtabs()) + size
        if after <= width or is_first or self._is_split:
            self._column = _on_row(after, width)
            return spaces + word
        self._column = _on_row(size, width)
        return f"\n{word}"

    def _begins_code(self, spaces: str, word: str) -> bool:
        """Whether the line that begins so is code, or a fence around it."""
        if self._fence:
            if word.startswith(self._fence) and not word.strip(self._fence[0]):
                self._fence = ""
            return True
        if opening := FENCE.fullmatch(word):
            self._fence = opening[1]
            return True
        is_indented = len(spaces.expandtabs(CODE_INDENT)) >= CODE_INDENT
        return is_indented and not LIST_MARKER.fullmatch(word)


def cells(text: str) -> int:
    """How many cells of a terminal a text takes."""
    # Imported by those who write on a terminal: other commands start without.
    from rich.cells import cell_len

    return cell_len(text)


def may_break(before: str, after: str) -> bool:
    """Whether a line may end between two characters that are no spaces: it may next to wide ones, as East Asian text is set."""
    if ZERO_WIDTH_JOINER in {before, after} or category(after) in {"Mn", "Me"} or ord(after) in SKIN_TONES:
        return False
    if before in NOT_LAST or after in NOT_FIRST or (ord(before) in HANGUL and ord(after) in HANGUL):
        return False
    return not {east_asian_width(before), east_asian_width(after)}.isdisjoint("WF")


def _on_row(cells: int, width: int) -> int:
    """How many cells the last row has when a terminal breaks a text of ``cells`` cells into rows."""
    return (cells - 1) % width + 1 if cells > width else cells
