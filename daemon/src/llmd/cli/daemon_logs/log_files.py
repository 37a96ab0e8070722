"""Reads the log file of a daemon and the older files that its rotation has left."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from llmd.cli.log_file import NUM_OLD

FOLLOW_S = 0.2


def last_lines(path: Path, count: int, passes: Callable[[], Callable[[str], bool]]) -> list[str]:
    """Return the last lines that pass, oldest first. ``passes`` makes a filter, one for each file."""
    files = (path, *(path.with_name(f"{path.name}.{number}") for number in range(1, NUM_OLD + 1)))
    found: list[str] = []
    for file in files:
        if len(found) >= count or not file.exists():
            break
        chosen = passes()
        with file.open(errors="replace") as lines:
            found[:0] = [line.rstrip("\n") for line in lines if chosen(line)]
    return found[len(found) - count :] if count < len(found) else found


def new_lines(path: Path, wait: Callable[[float], None]) -> Iterator[str]:
    """Yield the lines that are written from now on, over rotations. ``wait`` is called between two looks."""
    file: BinaryIO = path.open("rb")
    try:
        file.seek(0, os.SEEK_END)
        rest = b""
        while True:
            # Looked up before the last read: what is written in between is read from the old file.
            is_rotated = _is_other(file, path)
            while piece := file.readline():
                rest += piece
                if rest.endswith(b"\n"):
                    yield rest.decode(errors="replace").rstrip("\n")
                    rest = b""
            if is_rotated:
                file.close()
                file = path.open("rb")
            else:
                wait(FOLLOW_S)
    finally:
        file.close()


def _is_other(file: BinaryIO, path: Path) -> bool:
    """Return whether the path is another file now. A missing one is about to be made."""
    try:
        return not os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
