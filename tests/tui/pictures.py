"""Compares what a screen shows with a committed picture: SVG, compressed, as browsers open it.

``LLMD_UPDATE_PICTURES=1 pytest tests/tui`` writes the pictures: look at each change before you commit it.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import re
from pathlib import Path

from textual.app import App

FOLDER = Path(__file__).parent / "pictures"
SIZES = ((80, 24), (120, 40), (200, 60))
LIMIT_S = 5.0
DRAWN_S = 0.05
THEMES = ("textual-dark", "textual-light")


async def assert_picture(app: App[None], name: str) -> None:
    """Compare the present screen with ``pictures/NAME.svgz``, once what is pending has been drawn."""
    path = FOLDER / f"{name}.svgz"
    if os.environ.get("LLMD_UPDATE_PICTURES"):
        await asyncio.sleep(DRAWN_S)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(picture(app).encode(), mtime=0))
    assert path.exists(), f"{path} is missing: run again with LLMD_UPDATE_PICTURES=1"
    kept = gzip.decompress(path.read_bytes()).decode()
    for _ in range(round(LIMIT_S / DRAWN_S)):  # Textual draws at times of its own: late on a busy machine
        shown = picture(app)
        if shown == kept:
            break
        await asyncio.sleep(DRAWN_S)
    assert words(shown) == words(kept)
    assert shown == kept


def picture(app: App[None]) -> str:
    """Return the screen as SVG, without fonts from elsewhere and without the hash in its names."""
    svg = app.export_screenshot(simplify=True)
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"terminal-\d+", "terminal", svg)
    return svg.replace("<svg ", '<svg xml:space="preserve" ', 1)


def words(svg: str) -> list[str]:
    """Return the texts of a picture, so that a difference is readable."""
    return re.findall(r">([^<>]+)</text>", svg)
