"""A page of documentation as the blocks of code that a reader types, saves or compares.

In a `console` block, a line that begins with ``$`` is a command. It goes on over a backslash at the end of a
line, an open quote and a here-document. Lines that begin with ``>`` are typed into a command that reads lines
(`llmd chat`); all other lines are output. In output, ``…`` stands for text that differs, and alone on a line
for any lines. The whole of an `sh` or `python` block is run. If the line before a block ends with the name of
a file in code and a colon, the block is the text of that file instead.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from msgspec import Struct

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ANY_FENCE = re.compile(r"^\s*(?:```|~~~)", re.MULTILINE)
SAVED_AS = re.compile(r"`([^`\s]+)`:$")
HERE_DOCUMENT = re.compile(r"<<-?\s*'?(\w+)'?")


class Block(Struct, frozen=True):
    """A fenced block. ``line`` is the number of its first line, ``file`` where its text is saved."""

    language: str
    text: str
    line: int
    file: str = ""


class Command(Struct, frozen=True):
    """A command with the lines that are typed into it and the lines that it prints."""

    text: str
    line: int
    typed: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page in order.

    Raises:
        AssertionError: a fence is indented, or has no end.
    """
    found = [_block(page, one) for one in FENCE.finditer(page)]
    assert len(ANY_FENCE.findall(page)) == 2 * len(found), "a fence is indented, or has no end"
    return found


def _block(page: str, found: re.Match[str]) -> Block:
    before = page[: found.start()].rstrip().rpartition("\n")[2]
    name = SAVED_AS.search(before)
    line = page.count("\n", 0, found.start()) + 2
    return Block(found[1], found[2], line, name[1] if name else "")


def commands(block: Block) -> list[Command]:
    """Return the commands of a `console` block.

    Raises:
        AssertionError: the block does not begin with a command, or a command has no end.
    """
    groups: list[list[tuple[int, str]]] = []
    for number, line in enumerate(block.text.splitlines(), start=block.line):
        if line.startswith("$ "):
            groups.append([])
        assert groups, f"line {number} is output before any command"
        groups[-1].append((number, line))
    return [_command(group) for group in groups]


def _command(group: Sequence[tuple[int, str]]) -> Command:
    lines = [line for _, line in group]
    length = next((n for n in range(1, len(lines) + 1) if is_complete("\n".join(lines[:n])[2:])), 0)
    assert length, f"the command in line {group[0][0]} has no end"
    others = lines[length:]
    typed = tuple(line.removeprefix(">").removeprefix(" ") for line in others if line.startswith(">"))
    shown = tuple(line for line in others if not line.startswith(">"))
    return Command("\n".join(lines[:length])[2:], group[0][0], typed, shown)


def is_complete(text: str) -> bool:
    """Whether a shell would run a command, rather than wait for its next line."""
    first, *rest = text.split("\n")
    if (document := HERE_DOCUMENT.search(first)) is not None:
        return document[1] in rest
    if text.endswith("\\"):
        return False
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return False
    return True


def difference(shown: Sequence[str], output: str) -> str:
    """Return why the output of a command is not what a page shows; empty if it is.

    The width of gaps is ignored.
    """
    pattern = "\n".join(_pattern(line) for line in shown)
    pattern = pattern.replace("(?s:.*)\n", r"(?:(?s:.*)\n)?").replace("\n(?s:.*)", r"(?:\n(?s:.*))?")
    if re.fullmatch(pattern, "\n".join(_normal(output.splitlines())).strip("\n")):
        return ""
    return "\n".join(["the page shows:", *shown, "", "the command prints:", output])


def _pattern(line: str) -> str:
    if line.strip() == "…":
        return "(?s:.*)"
    (text,) = _normal([line])
    return re.escape(text).replace("…", "[^\n]*")


def _normal(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield re.sub(r"[ \t]+", " ", line).rstrip()
