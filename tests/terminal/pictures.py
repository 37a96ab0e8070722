"""Pictures of a terminal: SVG that refers to nothing outside itself, as pages and browsers show it."""

from __future__ import annotations

import io
import re

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->\s*", re.DOTALL)


def picture_of(screen: str, *, columns: int, title: str) -> str:
    """Return a picture of a screen with escape sequences, as `Tmux.coloured` returns it."""
    console = Console(
        record=True, width=columns, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    # As a whole: a line begins with the colours in which the one before it ended.
    console.print(Text.from_ansi(screen.rstrip("\n")), soft_wrap=True)
    svg = console.export_svg(title=title, theme=MONOKAI, unique_id="screen")
    svg = COMMENT.sub("", FONTS.sub("", svg))
    return svg.replace("Fira Code, monospace", "monospace").replace("<svg ", '<svg xml:space="preserve" ', 1)
