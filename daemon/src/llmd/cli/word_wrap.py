"""Wraps streamed text at words, to the current width of the terminal."""

from __future__ import annotations

import re
from collections.abc import Callable
from unicodedata import category, east_asian_width

ZERO_WIDTH_JOINER = "\u200d"
SKIN_TONES = range(0x1F3FB, 0x1F400)
HANGUL = range(0xAC00, 0xD7A4)  # Korean puts spaces between words
# Chinese and Japanese punctuation that never starts a line, or never ends one.
NOT_FIRST = frozenset("、。，．・：；！？」』）】》〉〕］｝ー…")
NOT_LAST = frozenset("「『（【《〈〔［｛")
FENCE = re.compile(r"(`{3,}|~{3,})[^`]*")
LIST_MARKER = re.compile(r"[-*+]|\d{1,9}[.)]")
CODE_INDENT = 4


class WordWrap:
    """Takes a text in pieces and returns what to show. A word is held back until it is complete.

    Fenced and indented code is not wrapped. Nor is a word wider than the terminal: the terminal breaks it,
    and it can still be copied in one piece.
    """

    def __init__(self, width: Callable[[], int]) -> None:
        """``width`` is called for each word: the terminal may be resized in between."""
        self._width = width
        self._column = 0  # cells of the row that the cursor is on
        self._spaces = ""  # between the last word and the next
        self._word = ""  # not shown yet
        self._at_line_start = True  # no word of this line has been shown
        self._is_verbatim = False  # this line is not wrapped
        self._is_split = False  # the start of this word has been shown
        self._fence = ""  # the fence that opened the current code block

    def feed(self, text: str) -> str:
        """Take the next piece and return what can be shown now."""
        return "".join(map(self._take, text))

    def flush(self) -> str:
        """End the text and return the word that was held back."""
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
        """Return the word with the spaces before it, or on a new row if it does not fit on this one."""
        word, spaces = self._word, self._spaces
        if self._at_line_start:
            self._is_verbatim = self._begins_code(spaces, word)
        is_first, self._at_line_start = self._at_line_start, False
        self._word = self._spaces = ""
        if self._is_verbatim:
            return spaces + word
        width, size = self._width(), cells(word)
        before = _on_row(self._column, width)  # a terminal that became narrower has wrapped the row itself
        after = len((" " * before + spaces).expandtabs()) + size
        if after <= width or is_first or self._is_split:
            self._column = _on_row(after, width)
            return spaces + word
        self._column = _on_row(size, width)
        return f"\n{word}"

    def _begins_code(self, spaces: str, word: str) -> bool:
        """Whether a line that starts with these spaces and this word is code or a fence."""
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
    """Return the width of a text in terminal cells."""
    # Imported late: commands that do not write on a terminal start faster.
    from rich.cells import cell_len

    return cell_len(text)


def may_break(before: str, after: str) -> bool:
    """Whether a line may break between two non-space characters: next to wide ones, as in East Asian text."""
    if ZERO_WIDTH_JOINER in {before, after} or category(after) in {"Mn", "Me"} or ord(after) in SKIN_TONES:
        return False
    if before in NOT_LAST or after in NOT_FIRST or (ord(before) in HANGUL and ord(after) in HANGUL):
        return False
    return not {east_asian_width(before), east_asian_width(after)}.isdisjoint("WF")


def _on_row(cells: int, width: int) -> int:
    """Return the length of the last row when the terminal wraps a text of ``cells`` cells."""
    return (cells - 1) % width + 1 if cells > width else cells
