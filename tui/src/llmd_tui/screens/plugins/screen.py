"""The plugins of the daemon, and why some of them do not work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from llmd_tui.screen import DaemonScreen
from llmd_tui.screens.plugins.plugin_rows import COLUMNS, commands, key_of, row_of, summary
from llmd_tui.widgets.command_dialog import CommandDialog
from llmd_tui.widgets.details import Details
from llmd_tui.widgets.filter_table import FilterTable
from llmd_tui.widgets.table import Table

INSTALL = ("llmd plugins install NAME", "llmd plugins list")


class PluginsScreen(DaemonScreen):
    """A table of plugins with the details of one below."""

    CSS_PATH = "plugins.tcss"
    NAME = "plugins"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "commands", "Commands"),
        Binding("y", "copy_fix", "Copy fix"),
        Binding("n", "install", "Install"),
        Binding("r", "describe_again", "Describe again"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._plugins: dict[str, Mapping[str, Any]] = {}

    def compose_body(self) -> ComposeResult:
        yield FilterTable(COLUMNS, "plugins", sorting=self.tui.preferences.sorting.get(self.NAME))
        yield Details(id="summary")

    def on_screen_resume(self) -> None:
        self.query_one(FilterTable).focus_table()

    async def fetch(self) -> None:
        answer = await self.daemon.get("/llmd/plugins")
        self._plugins = {key_of(plugin): plugin for plugin in answer.get("plugins", ())}
        self.query_one(FilterTable).show([row_of(plugin) for plugin in self._plugins.values()])
        self._show_summary()

    def action_commands(self) -> None:
        """Show the commands that change the plugin: the daemon changes no plugins over HTTP."""
        plugin = self._selected()
        if plugin is not None:
            explanation = "Plugins are changed on the daemon's machine. Type one of these there:"
            self.app.push_screen(
                CommandDialog(f"The plugin {plugin.get('name')}", explanation, commands(plugin))
            )

    def action_install(self) -> None:
        """Show the command that installs a plugin."""
        explanation = (
            "Plugins are installed on the daemon's machine. Type this there; NAME is a package or a path:"
        )
        self.app.push_screen(CommandDialog("Install a plugin", explanation, INSTALL))

    def action_copy_fix(self) -> None:
        """Copy how to make the plugin work."""
        self.copy_fix(str((self._selected() or {}).get("fix") or ""))

    @work(exclusive=True, group="describe")
    async def action_describe_again(self) -> None:
        """Let the daemon read its configuration again, and show what it then says of its plugins."""
        if await self.told(self.daemon.post("/llmd/reload", {})) is not None:
            self.notify("The daemon has read its configuration again.")
        self.begin_fetch()

    @on(Table.Chosen)
    def show_commands(self) -> None:
        self.action_commands()

    @on(Table.Moved)
    def _show_summary(self) -> None:
        plugin = self._selected()
        self.query_one("#summary", Details).show(summary(plugin) if plugin else ())

    def _selected(self) -> Mapping[str, Any] | None:
        selected = self.query_one(FilterTable).selected
        return self._plugins.get(selected) if selected is not None else None
