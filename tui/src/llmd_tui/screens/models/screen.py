"""The models of the daemon: load, unload, pull, remove, copy, and look into them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import aclosing
from typing import Any, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.worker import Worker

from llmd.api.errors import LlmdError
from llmd_tui import actions
from llmd_tui.screen import DaemonScreen
from llmd_tui.screens.models import description
from llmd_tui.screens.models.listing import ListedModel, Listing, current, listing
from llmd_tui.screens.models.model_rows import COLUMNS, row_of, summary
from llmd_tui.screens.models.pulls import Pulls
from llmd_tui.screens.models.pulls_pane import PullsPane
from llmd_tui.state.daemon_state import DaemonState
from llmd_tui.widgets.choice import Choice, Option, confirmation
from llmd_tui.widgets.command_dialog import CommandDialog
from llmd_tui.widgets.details import Details, DetailsDialog
from llmd_tui.widgets.filter_table import FilterTable
from llmd_tui.widgets.table import Table
from llmd_tui.widgets.table_rows import Row
from llmd_tui.widgets.text_dialog import TextDialog


class ModelsScreen(DaemonScreen):
    """A table of models with the running pulls below."""

    CSS_PATH = "models.tcss"
    NAME = "models"
    FETCH_S = 10.0
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "chat", "Chat"),
        Binding("l", "load", "Load"),
        Binding("u", "unload", "Unload"),
        Binding("p", "pull", "Pull"),
        Binding("i", "details", "Details"),
        Binding("x,delete", "remove", "Remove"),
        Binding("c", "copy_model", "Copy"),
        Binding("v", "convert", "Convert"),
        Binding("y", "copy_name", "Copy name", show=False),
        Binding("r", "refresh_now", "Refresh", show=False),
        Binding("escape", "leave_pull", "Leave pull", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._listing = Listing()
        self._rows: dict[str, Row] = {}
        self._seen: object = None
        self._running_pulls: dict[str, Worker[None]] = {}

    def compose_body(self) -> ComposeResult:
        sorting = self.tui.preferences.sorting.get(self.NAME)
        yield FilterTable(COLUMNS, "models", sorting=sorting)
        yield Details(id="summary")
        yield PullsPane()

    def on_mount(self) -> None:
        self._pulls = Pulls(self.daemon, self.tui.clock)

    def on_screen_resume(self) -> None:
        self.query_one(FilterTable).focus_table()

    async def fetch(self) -> None:
        stored, served = await asyncio.gather(self.daemon.get("/llmd/models"), self.daemon.get("/llmd/ps"))
        self._listing = listing(stored, served)
        self._pulls.see_others(self._listing.pulls)
        self._show_pulls()
        self._seen = None
        self._rows = {}
        self.show_state(self.tui.state)

    def show_state(self, state: DaemonState) -> None:
        """Show what has changed; the rows of all other models stay as they are."""
        statuses = {name: model.status for name, model in state.models.items()}
        seen = (statuses, dict(state.loading))
        if seen == self._seen:
            return
        if self._seen is not None and statuses != self._seen[0]:  # type: ignore[index]
            self.begin_fetch()
        self._seen = seen
        changing = {name for name, one in self._listing.models.items() if one.is_served or one.base}
        changing |= statuses.keys() | state.loading.keys()
        for name in self._listing.models.keys() - self._rows.keys() | changing:
            self._rows[name] = row_of(self._model(name), ascii_only="-ascii" in self.app.classes)
        known = [*self._listing.models, *(changing - self._listing.models.keys())]
        self.query_one(FilterTable).show([self._rows[name] for name in known])
        self._show_summary()

    def cancel(self) -> bool:
        """Ask what becomes of the running pull; return whether there is one."""
        if not self._pulls.own:
            return False
        self.ask_about_pull(self._pulls.own[-1])
        return True

    def action_leave_pull(self) -> None:
        self.cancel()

    def action_refresh_now(self) -> None:
        self.begin_fetch()

    def action_chat(self) -> None:
        """Open the chat with the model."""
        if (model := self._selected_model()) is not None:
            self.post_message(actions.ChatWith(model.name))

    @work(group="dialog", exclusive=True)
    async def action_load(self) -> None:
        """Load the model; ask first if it will not fit."""
        model = self._selected_model()
        if model is None:
            return
        if model.state == "loaded":
            self.notify(f"{model.name} is loaded already.")
            return
        warning = description.fit_warning(model, await self._devices())
        question = confirmation("Load it nevertheless?", warning, yes="Load", is_destructive=False)
        answer = await self.app.push_screen_wait(question) if warning else "yes"
        if answer:
            self.load(model.name)

    @work(group="load")
    async def load(self, name: str) -> None:
        """Load a model, and say in a dialog why it was not loaded: a notice would be gone too soon."""
        result: Mapping[str, Any] = {}
        try:
            async with aclosing(self.daemon.lines("/llmd/load", {"model": name})) as steps:
                async for step in steps:  # the events tell how far it is
                    result = step
        except LlmdError as error:
            self.app.push_screen(Choice(f"{name} was not loaded", str(error), [Option("", "Close")]))
        else:
            self.notify(description.loaded(name, result))
        self.begin_fetch()

    @work(group="dialog", exclusive=True)
    async def action_unload(self) -> None:
        """Unload the model; ask first if it answers requests."""
        model = self._selected_model()
        if model is None:
            return
        if not model.is_served and model.state == "unloaded":
            self.notify(f"{model.name} is not loaded.")
            return
        name = model.engine_name
        running = sum(one.model == name for one in self.tui.state.requests.values())
        requests = "a request, which ends" if running == 1 else f"{running} requests, which end"
        dialog = confirmation("Unload it?", f"{name} answers {requests} with an error.", yes="Unload")
        answer = await self.app.push_screen_wait(dialog) if running else "yes"
        if answer:
            self.post_message(actions.UnloadModel(name))

    @work(group="dialog", exclusive=True)
    async def action_pull(self) -> None:
        """Ask for a model's name on the hub, and pull it."""
        hint = "Its name on the hub, such as Qwen/Qwen3-0.6B, optionally with :TAG. A pull that ended early goes on."
        name = await self.app.push_screen_wait(TextDialog("Pull a model", hint, fault=self._pull_fault))
        if name:
            self._running_pulls[name] = self.pull(name)

    @work(group="pulls")
    async def pull(self, name: str) -> None:
        """Follow a pull to its end, and go to the model, unless the cursor has moved meanwhile."""
        table = self.query_one(FilterTable).table
        selected = table.selected
        try:
            async with aclosing(self._pulls.follow(name)) as steps:
                async for _ in steps:
                    self._show_pulls()
        except LlmdError as error:
            self.app.push_screen(Choice(f"{name} was not pulled", str(error), [Option("", "Close")]))
        else:
            self.notify(f"Pulled {name}.")
            await self.told(self.fetch())
            if table.selected == selected:
                table.go_to(name)
        finally:
            if self.is_running:  # not while the interface ends
                self._show_pulls()
                self.begin_fetch()

    @work(group="dialog", exclusive=True)
    async def ask_about_pull(self, name: str) -> None:
        """Ask whether a pull goes on."""
        question = (
            "It can go on while you do something else; it ends when you quit, unless another client waits "
            "for it. What has been fetched is kept, and the next pull goes on from there."
        )
        options = [Option("", "Go on"), Option("end", "End it", is_destructive=True)]
        if await self.app.push_screen_wait(Choice(f"The pull of {name}", question, options)):
            self._running_pulls[name].cancel()
            self.notify(f"Ended the pull of {name}.")

    @work(group="dialog", exclusive=True)
    async def action_details(self) -> None:
        """Show everything that is known about the model."""
        model = self._selected_model()
        if model is not None:
            shown = await self.told(self.daemon.post("/api/show", {"model": model.name}))
            self.app.push_screen(DetailsDialog(model.name, description.sections(model, shown or {})))

    @work(group="dialog", exclusive=True)
    async def action_remove(self) -> None:
        """Remove the model from the disk, after a question."""
        model = self._selected_model()
        if model is None:
            return
        if not model.is_removable:
            self.notify(description.not_removable(model), severity="warning")
            return
        question = confirmation(f"Remove {model.name}?", description.removal(model), yes="Remove")
        if await self.app.push_screen_wait(question):
            asked = self.daemon.delete("/api/delete", {"model": model.name})
            await self._change(asked, done=f"Removed {model.name}.")

    @work(group="dialog", exclusive=True)
    async def action_copy_model(self) -> None:
        """Copy the model under a new name."""
        model = self._selected_model()
        if model is None:
            return
        hint = f"A second name for {model.name}. It stays when {model.name} is pulled again or removed."
        name = await self.app.push_screen_wait(TextDialog("Copy a model", hint, fault=self._name_fault))
        if name:
            body = {"source": model.name, "destination": name}
            await self._change(self.daemon.post("/api/copy", body), done=f"Copied {model.name} to {name}.")

    def action_convert(self) -> None:
        """Show the commands that convert the model: the daemon does not convert."""
        model = self._selected_model()
        if model is not None:
            explanation = "The daemon does not convert models. Type one of these on the daemon's machine:"
            commands = description.convert_commands(model.name)
            self.app.push_screen(CommandDialog(f"Convert {model.name}", explanation, commands))

    def action_copy_name(self) -> None:
        if (model := self._selected_model()) is not None:
            self.post_message(actions.CopyText(model.name, "the model's name"))

    @on(Table.Moved)
    def _show_summary(self) -> None:
        selected = self.query_one(FilterTable).selected
        self.query_one("#summary", Details).show(summary(self._model(selected)) if selected else ())

    @on(Table.Chosen)
    def chat_with_chosen(self) -> None:
        self.action_chat()

    def _selected_model(self) -> ListedModel | None:
        selected = self.query_one(FilterTable).selected
        if selected is None:
            self.notify("No model is selected.", severity="warning")
        return None if selected is None else self._model(selected)

    def _model(self, name: str) -> ListedModel:
        return current(self._listing.models.get(name) or ListedModel(name), self.tui.state)

    def _show_pulls(self) -> None:
        self.query_one(PullsPane).show(self._pulls.shown)

    def _name_fault(self, name: str) -> str:
        return f"there is a model {name} already" if name in self._listing.models else ""

    def _pull_fault(self, name: str) -> str:
        return f"{name} is being pulled already" if name in self._pulls.own else ""

    async def _devices(self) -> list[Mapping[str, Any]]:
        try:
            return list((await self.daemon.get("/llmd/devices")).get("devices", ()))
        except LlmdError:
            return []  # the load itself says what is wrong

    async def _change(self, asked: Awaitable[object], *, done: str) -> None:
        """Wait until the daemon has changed its models, and show them; or say why it refuses."""
        if await self.told(asked) is not None:
            self.notify(done)
            self.begin_fetch()
