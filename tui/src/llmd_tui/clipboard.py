"""Copies text to the clipboard of the person in front of the terminal.

A native program is tried first, but not over SSH, where it would fill the clipboard of the wrong machine.
Then the terminal is asked (OSC 52), which has no answer. Because of that, the text is also kept in a file.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

PROGRAMS: Sequence[tuple[str, ...]] = (
    ("pbcopy",),
    ("wl-copy",),
    ("xclip", "-selection", "clipboard"),
    ("clip.exe",),
)
NEEDS = {"wl-copy": "WAYLAND_DISPLAY", "xclip": "DISPLAY"}
"""Variable without which a program cannot reach a clipboard."""
LIMIT_S = 2.0


def native_program(environ: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the command that fills this person's clipboard; None if there is none."""
    if environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"):
        return None
    for program in PROGRAMS:
        needed = NEEDS.get(program[0])
        if shutil.which(program[0]) and (needed is None or environ.get(needed)):
            return program
    return None


def copied_natively(text: str, program: Sequence[str]) -> bool:
    """Give a text to a clipboard program; return whether it took it."""
    try:
        done = subprocess.run(
            program,
            input=text.encode(),
            timeout=LIMIT_S,
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def kept_in_file(text: str, folder: Path) -> Path:
    """Write a text to a file that only this user may read, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "copied.txt"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return path
