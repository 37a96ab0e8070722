"""Steps that tests of the interface share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widget import Widget

from tests.tui.conftest import ListeningTui, settled, turns
from tests.tui.pictures import SIZES, THEMES, assert_picture


class Shown(App[None]):
    """Shows one widget, and keeps the messages of the given kinds that reach it."""

    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self.widget = widget
        self.seen: list[Any] = []
        self.animation_level = "none"

    def compose(self) -> ComposeResult:
        yield self.widget


async def assert_pictures(pilot: Pilot[None], name: str) -> None:
    """Compare the present screen with its pictures in all sizes and themes."""
    for width, height in SIZES:
        await pilot.resize_terminal(width, height)
        for theme in THEMES:
            pilot.app.theme = theme
            await settled(pilot)
            await assert_picture(pilot.app, f"{name}-{width}x{height}-{theme}")


async def press(pilot: Pilot[Any], *keys: str) -> None:
    """Press keys, and wait after each for what it opens."""
    for key in keys:
        await pilot.press(key)
        await turns()
    await pilot.pause()


async def until(pilot: Pilot[Any], condition: Callable[[], object]) -> None:
    """Wait until something is so; a busy machine needs several pauses for it."""
    for _ in range(250):
        if condition():
            return
        await pilot.pause(0.02)
    raise AssertionError(f"not so after many pauses; shown is:\n{text(pilot.app)}")


def lines(app: App[Any]) -> list[str]:
    """Return the lines that the terminal shows."""
    strips = app.screen._compositor.render_strips()
    return ["".join(segment.text for segment in strip).rstrip() for strip in strips]


def text(app: App[Any]) -> str:
    """Return what the terminal shows, without empty lines."""
    return "\n".join(filter(None, lines(app)))


def notices(app: App[Any]) -> list[str]:
    """Return the texts of the notices, oldest first."""
    assert isinstance(app, ListeningTui)
    return app.said
