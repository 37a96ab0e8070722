"""Terminal capabilities: width, styles, and lines that can be replaced."""

from __future__ import annotations

import os
import shutil
from typing import IO

import click


def terminal_width() -> int:
    """Return the current width of the terminal in cells."""
    return shutil.get_terminal_size().columns


def has_styles() -> bool:
    """Whether text on a terminal may be styled; see https://no-color.org."""
    return not os.environ.get("NO_COLOR") and not _is_dumb()


def dimmed(text: str) -> str:
    """Dim text if the terminal can and NO_COLOR is not set."""
    return click.style(text, dim=True) if has_styles() else text


def has_changing_lines(stream: IO[str]) -> bool:
    """Whether a line written to the stream can be replaced."""
    return stream.isatty() and not _is_dumb()


def replace_line(stream: IO[str], text: str) -> None:
    """Replace the current line with as much of a text as fits."""
    # Imported late: commands that do not write on a terminal start faster.
    from rich.cells import cell_len, set_cell_size

    fitting = set_cell_size(text, min(cell_len(text), terminal_width() - 1))
    stream.write(f"\r{fitting}\x1b[K")
    stream.flush()


def _is_dumb() -> bool:
    return os.environ.get("TERM") == "dumb"
