"""The interface over a scripted daemon."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from llmd_tui.app import Folders, LlmdTui
from llmd_tui.screen import DaemonScreen
from tests.tui.scripted_daemon import ScriptedDaemon

MakeTui = Callable[..., LlmdTui]


class ListeningTui(LlmdTui):
    """Keeps what it said: notices go after a few seconds, and a test may take longer on a busy machine."""

    def __init__(self, *parts: Any, **options: Any) -> None:
        super().__init__(*parts, **options)
        self.said: list[str] = []
        self.animation_level = "none"

    def notify(self, message: str, **options: Any) -> None:
        self.said.append(message)
        super().notify(message, **options)


@pytest.fixture
def daemon() -> ScriptedDaemon:
    return ScriptedDaemon()


@pytest.fixture
def make_tui(daemon: ScriptedDaemon, tmp_path: Path) -> MakeTui:
    """Return a function that makes the interface with the given screens. Its folders are in ``tmp_path``."""

    def make(*screens: type[DaemonScreen], **options: Any) -> LlmdTui:
        folders = Folders(tmp_path / "data", tmp_path / "state")
        return ListeningTui(daemon, {one.NAME: one for one in screens}, folders=folders, **options)

    return make


async def settled(pilot: Pilot[None]) -> None:
    """Let everything that was sent arrive, and be shown."""
    await pilot.pause()
    await turns()
    assert isinstance(pilot.app, LlmdTui)
    pilot.app.show_now()
    await turns()
    await pilot.pause()


async def turns() -> None:
    """Give each task several turns. That takes less time than pauses, which wait for idle widgets."""
    for _ in range(100):
        await asyncio.sleep(0)
