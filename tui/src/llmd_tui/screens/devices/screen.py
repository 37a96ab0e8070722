"""The devices of the daemon, and which of them has which layers of each running model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from llmd_tui.screen import DaemonScreen
from llmd_tui.screens.devices.device_rows import COLUMNS, row_of, summary
from llmd_tui.screens.devices.layer_map import LayerMap
from llmd_tui.screens.devices.placement import PlacedModel, Use, placed_models, use_of
from llmd_tui.state.daemon_state import DaemonState
from llmd_tui.widgets.details import Details
from llmd_tui.widgets.filter_table import FilterTable
from llmd_tui.widgets.table import Table


class DevicesScreen(DaemonScreen):
    """Devices with their memory, and the layer map."""

    CSS_PATH = "devices.tcss"
    NAME = "devices"
    FETCH_S = 5.0
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy_fix", "Copy fix"),
        Binding("m", "focus_map", "Layer map"),
        Binding("r", "refresh_now", "Refresh"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._devices: Sequence[Mapping[str, Any]] = ()
        self._memories: Sequence[Mapping[str, Any]] = ()
        self._models: Sequence[PlacedModel] = ()
        self._statuses: Mapping[str, str] = {}

    def compose_body(self) -> ComposeResult:
        yield FilterTable(COLUMNS, "devices", sorting=self.tui.preferences.sorting.get(self.NAME))
        yield Details(id="summary")
        yield LayerMap()

    def on_screen_resume(self) -> None:
        self.query_one(FilterTable).focus_table()

    async def fetch(self) -> None:
        devices, plan = await asyncio.gather(self.daemon.get("/llmd/devices"), self.daemon.get("/llmd/plan"))
        self._devices = tuple(devices.get("devices", ()))
        self._memories = tuple(devices.get("memories", ()))
        self._models = placed_models(plan)
        rows = [row_of(one, self._use_of(one), ascii_only=self._ascii_only) for one in self._devices]
        self.query_one(FilterTable).show(rows)
        self._show_summary()
        self._show_map()

    def show_state(self, state: DaemonState) -> None:
        """Show what the daemon says of its models; ask again where they are when one came or went."""
        self._show_map()
        statuses = {name: model.status for name, model in state.models.items()}
        if statuses != self._statuses:
            self._statuses = statuses
            self.begin_fetch()

    def action_copy_fix(self) -> None:
        """Copy how to make the device usable."""
        self.copy_fix(str((self._selected() or {}).get("fix") or ""))

    def action_focus_map(self) -> None:
        """Go to the layer map, to scroll it; from there, back to the table."""
        layer_map = self.query_one(LayerMap)
        if layer_map.has_focus:
            self.query_one(FilterTable).focus_table()
        else:
            layer_map.focus()

    def action_refresh_now(self) -> None:
        self.begin_fetch()

    @on(Table.Moved)
    def _show_summary(self) -> None:
        device = self._selected()
        if device is None:
            self.query_one("#summary", Details).show(())
            return
        shown = summary(device, self._use_of(device), self._models, ascii_only=self._ascii_only)
        self.query_one("#summary", Details).show(shown)

    def _show_map(self) -> None:
        self.query_one(LayerMap).show(self._models, self.tui.state.models)

    def _use_of(self, device: Mapping[str, Any]) -> Use | None:
        return use_of(device, self._models, self._memories)

    def _selected(self) -> Mapping[str, Any] | None:
        selected = self.query_one(FilterTable).selected
        found = [one for one in self._devices if f"{one.get('plugin')}/{one.get('name')}" == selected]
        return found[0] if found else None

    @property
    def _ascii_only(self) -> bool:
        return "-ascii" in self.app.classes
