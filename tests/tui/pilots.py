"""Steps that tests of the interface share."""

from __future__ import annotations

import asyncio
from typing import Any

from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widget import Widget

from llmd_tui.app import LlmdTui
from tests.tui.pictures import SIZES, THEMES, assert_picture


class Shown(App[None]):
    """Shows one widget, and keeps the messages of the given kinds that reach it."""

    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self.widget = widget
        self.seen: list[Any] = []

    def compose(self) -> ComposeResult:
        yield self.widget


async def settled(pilot: Pilot[Any], tui: LlmdTui) -> None:
    """Let events arrive and be shown, and requests be answered."""
    await pilot.pause()
    await _turns()
    tui.show_now()
    await _turns()
    await pilot.pause()


async def assert_pictures(pilot: Pilot[Any], tui: LlmdTui, name: str) -> None:
    """Compare the present screen with its pictures in all sizes and themes."""
    for width, height in SIZES:
        await pilot.resize_terminal(width, height)
        for theme in THEMES:
            tui.theme = theme
            await settled(pilot, tui)
            assert_picture(tui, f"{name}-{width}x{height}-{theme.removeprefix('textual-')}")


async def press(pilot: Pilot[Any], *keys: str) -> None:
    """Press keys, and wait after each for what it opens."""
    for key in keys:
        await pilot.press(key)
        await _turns()
    await pilot.pause()


async def _turns() -> None:
    """Give each task several turns; cheaper than a pause, which waits for all widgets to be idle."""
    for _ in range(20):
        await asyncio.sleep(0)


def lines(app: App[Any]) -> list[str]:
    """Return the lines that the terminal shows."""
    strips = app.screen._compositor.render_strips()
    return ["".join(segment.text for segment in strip).rstrip() for strip in strips]


def text(app: App[Any]) -> str:
    """Return what the terminal shows, without empty lines."""
    return "\n".join(filter(None, lines(app)))


def notices(app: App[Any]) -> list[str]:
    """Return the texts of the notices, oldest first."""
    return [notice.message for notice in app._notifications]
