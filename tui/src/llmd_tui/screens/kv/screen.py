"""The KV cache: which blocks are free, cached, used and shared."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from llmd.api.decoding import prepared
from llmd_tui.screen import DaemonScreen
from llmd_tui.screens.kv.block_map import BlockMap
from llmd_tui.screens.kv.blocks import Group
from llmd_tui.widgets.live_text import LiveText


class KVScreen(DaemonScreen):
    """The pool of one group of layers of one model."""

    CSS = """
    KVScreen #title {
        padding: 0 1;
        margin-bottom: 1;
    }
    """
    NAME = "kv"
    FETCH_S = 1.0
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,n", "change_model(1)", "Next model"),
        Binding("left,p", "change_model(-1)", "Previous model"),
        Binding("g", "change_group", "Next group of layers"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._model = ""
        self._group = 0
        self._groups: list[Group] = []

    def compose_body(self) -> ComposeResult:
        yield LiveText(id="title")
        yield BlockMap()

    async def fetch(self) -> None:
        names = self._names
        if self._model not in names:
            self._model, self._group = next(iter(names), ""), 0
        if not self._model:
            self._show([])
            return
        answer: dict[str, Any] = await self.daemon.get("/llmd/kv", model=self._model)
        self._show(msgspec.convert(answer["groups"], prepared(list[Group])))

    def action_change_model(self, by: int) -> None:
        """Show another model's cache."""
        names = self._names
        if names:
            place = names.index(self._model) if self._model in names else 0
            self._model, self._group = names[(place + by) % len(names)], 0
            self.begin_fetch()

    def action_change_group(self) -> None:
        """Show the blocks of the next group of layers."""
        self._group += 1
        self._show(self._groups)

    @property
    def _names(self) -> list[str]:
        """Names of the models that have a KV cache now."""
        models = self.tui.state.models.values()
        return [one.name for one in models if one.report is not None and one.report.kv_blocks_total]

    def _show(self, groups: list[Group]) -> None:
        self._groups = groups
        group = groups[self._group % len(groups)] if groups else None
        text = self._model
        if group is not None and len(groups) > 1:
            text += f"   group {self._group % len(groups) + 1} of {len(groups)}: {group.group}"
        self.query_one("#title", LiveText).show_text(text)
        self.query_one(BlockMap).show(group)
