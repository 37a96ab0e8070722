"""Texts of plugins, files and daemons, made fit for the screen."""

from __future__ import annotations

import re


def one_line(text: str) -> str:
    """Return a text in one line, without control characters."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def printable(text: str) -> str:
    """Return a text without control characters, but with its line breaks."""
    lines = text.expandtabs(4).splitlines()
    return "\n".join("".join(char for char in line if char.isprintable()) for line in lines)


def to_type(fix: str) -> str:
    """Return the first command in a fix, which stands between backticks; all of the fix if it has none."""
    found = re.search(r"`([^`]+)`", fix)
    return found.group(1) if found else fix
