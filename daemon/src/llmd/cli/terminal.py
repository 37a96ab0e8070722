"""What a terminal can show: its width, styles, and lines that change."""

from __future__ import annotations

import os
import shutil
from typing import IO

import click


def terminal_width() -> int:
    """How many cells a row of the terminal has now."""
    return shutil.get_terminal_size().columns


def has_styles() -> bool:
    """Whether text on a terminal may have styles: see https://no-color.org."""
    return not os.environ.get("NO_COLOR") and not _is_dumb()


def dimmed(text: str) -> str:
    """Dim text where the terminal does that and the user has not forbidden it."""
    return click.style(text, dim=True) if has_styles() else text


def has_changing_lines(stream: IO[str]) -> bool:
    """Whether a line on the stream can be replaced by another."""
    return stream.isatty() and not _is_dumb()


def replace_line(stream: IO[str], text: str) -> None:
    """Replace the line of the cursor, by as much of a text as fits."""
    # Imported by those who write on a terminal: other commands start without.
    from rich.cells import cell_len, set_cell_size

    fitting = set_cell_size(text, min(cell_len(text), terminal_width() - 1))
    stream.write(f"\r{fitting}\x1b[K")
    stream.flush()


def _is_dumb() -> bool:
    return os.environ.get("TERM") == "dumb"
