"""The pane of the running pulls."""

from __future__ import annotations

from collections.abc import Iterable

from llmd_tui.screens.models.pull_progress import PullProgress, lines
from llmd_tui.widgets.live_text import LiveText


class PullsPane(LiveText):
    """How far each pull is; hidden if there is none."""

    def __init__(self) -> None:
        super().__init__(id="pulls")

    def show(self, pulls: Iterable[PullProgress]) -> None:
        ascii_only = "-ascii" in self.app.classes
        shown = [line for pull in pulls for line in lines(pull, ascii_only=ascii_only)]
        self.set_class(bool(shown), "-running")
        self.show_text("\n".join(shown))
