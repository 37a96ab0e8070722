"""A widget alone in an application, which keeps the messages that it posts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot
from textual.widget import Widget


class WidgetApp(App[Any]):
    """Shows one widget."""

    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self._widget = widget
        self.posted: list[Message] = []

    def compose(self) -> ComposeResult:
        yield self._widget

    async def _dispatch_message(self, message: Message) -> None:
        self.posted.append(message)
        await super()._dispatch_message(message)


@asynccontextmanager
async def alone(
    widget: Widget, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[tuple[Pilot[Any], WidgetApp]]:
    """Show a widget alone."""
    app = WidgetApp(widget)
    async with app.run_test(size=size) as pilot:
        yield pilot, app
