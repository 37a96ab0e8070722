"""Bars of text: how far something is, and what something consists of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

from llmd_tui.widgets.words import share

FULL, EMPTY = "█", "░"
ASCII_FULL, ASCII_EMPTY = "#", "."
SMALL_FULL, SMALL_EMPTY = "■", "·"


class Piece(NamedTuple):
    """A part of a whole; its mark differs from those of others, so that it needs no colour."""

    name: str
    amount: float
    mark: str
    style: str = ""


def progress(done: float, total: float, width: int, *, ascii_only: bool = False) -> str:
    """Return a bar of ``width`` cells with its percentage; an empty one if ``total`` is not known."""
    full, empty = (ASCII_FULL, ASCII_EMPTY) if ascii_only else (FULL, EMPTY)
    reached = min(max(done / total, 0.0), 1.0) if total > 0 else 0.0
    cells = max(width - 5, 1)
    filled = int(reached * cells)
    return f"{full * filled}{empty * (cells - filled)} {share(reached):>4}"


def plain_bar(done: float, width: int, *, ascii_only: bool = False) -> str:
    """Return a bar of ``width`` cells without figures, for a line of text; ``done`` is a share."""
    full, empty = (ASCII_FULL, ASCII_EMPTY) if ascii_only else (SMALL_FULL, SMALL_EMPTY)
    filled = round(done * width)
    return full * filled + empty * (width - filled)


def stacked(pieces: Sequence[Piece], total: float, width: int, *, rest: str = "·") -> Text:
    """Return the pieces of a whole side by side in ``width`` cells; what they leave is filled with ``rest``.

    A piece that is not zero has at least one cell, as long as there is room.
    """
    bar = Text()
    for piece in pieces:
        room = width - bar.cell_len
        cells = round(piece.amount / total * width) if total > 0 else 0
        cells = min(max(cells, 1) if piece.amount > 0 else 0, room)
        bar.append(piece.mark * cells, piece.style)
    bar.append(rest * (width - bar.cell_len), "dim")
    return bar
