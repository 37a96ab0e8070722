"""The monitor: what the daemon does now, how fast, and why requests wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Input

from llmd_tui import actions
from llmd_tui.screen import DaemonScreen
from llmd_tui.screens.monitor.request_rows import COLUMNS, LEGEND, shown_rows
from llmd_tui.state.daemon_state import DaemonState
from llmd_tui.widgets.graph import Graph
from llmd_tui.widgets.table import Table
from llmd_tui.widgets.table_rows import Sorting
from llmd_tui.widgets.verdicts import Verdicts
from llmd_tui.widgets.words import seconds, share

TALL = 36
"""Rows of a terminal from which graphs are taller."""
WINDOWS = {"1 min": 60, "15 min": 900, "6 h": 6 * 3600}


def graphs() -> Iterator[tuple[str, Graph]]:
    """Yield the graphs by the name of their figure."""
    yield "decode_tps", Graph("output", lambda value: f"{value:.0f} tok/s")
    yield "prefill_tps", Graph("prompts", lambda value: f"{value:.0f} tok/s")
    yield "ttft_ms", Graph("first token", seconds)
    yield "itl_ms", Graph("per token", lambda value: f"{value:.1f} ms")
    yield "waiting", Graph("waiting", lambda value: f"{value:.0f}")
    yield "kv_usage", Graph("KV cache", share, top=1.0)


class MonitorScreen(DaemonScreen):
    """Verdicts, figures over time, and a table of requests."""

    CSS_PATH = "monitor.tcss"
    NAME = "monitor"
    LEGEND = LEGEND
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x,delete", "cancel_request", "Cancel request"),
        Binding("w", "change_window", "Time span"),
        Binding("f", "freeze", "Freeze"),
        Binding("slash", "filter", "Filter"),
        Binding("y", "copy_id", "Copy id"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._graphs = dict(graphs())
        self._window = next(iter(WINDOWS))
        self._frozen = False
        self._wanted = ""
        self._had_live = False

    def compose_body(self) -> ComposeResult:
        yield Verdicts()
        with Horizontal(classes="graphs"):
            yield from list(self._graphs.values())[:3]
        with Horizontal(classes="graphs"):
            yield from list(self._graphs.values())[3:]
        yield Input(placeholder="Show only requests with this text; Esc shows all", id="filter")
        yield Table(COLUMNS)

    def on_mount(self) -> None:
        self.query_one("#filter").display = False

    def on_screen_resume(self) -> None:
        table = self.query_one(Table)
        table.focus()
        self.call_later(table.show_first)  # once the state is shown: what runs and waits is at the top

    def on_resize(self, event: events.Resize) -> None:
        """Show taller graphs where there is room."""
        self.set_class(event.size.height >= TALL, "-tall")

    def show_state(self, state: DaemonState) -> None:
        if self._frozen:
            return
        self.query_one(Verdicts).show(state.models, state.loading)
        count = WINDOWS[self._window]
        for name, graph in self._graphs.items():
            graph.show(state.history.tail(name, count))
        empty = "No request contains this text." if self._wanted else "No requests yet."
        table = self.query_one(Table)
        # Where all had ended, nobody chose the first row: the cursor goes to the first live request. It never
        # goes from one live request to another by itself, since x would then end the wrong one.
        goes_to_first = table.is_at_first and not self._had_live
        self._had_live = bool(state.requests)
        table.show(shown_rows(state, self._wanted), Sorting(), empty=empty)
        if goes_to_first and state.requests:
            table.move_to(0)

    def action_cancel_request(self) -> None:
        """End the request under the cursor."""
        selected = self.query_one(Table).selected
        if selected is None or selected not in self.tui.state.requests:
            live = (
                "Home goes to the first that has not." if self.tui.state.requests else "None runs or waits."
            )
            has_ended = "" if selected is None else "The request under the cursor has ended. "
            self.notify(f"{has_ended}{live}", severity="warning")
            return
        self.post_message(actions.CancelRequest(selected))

    def action_change_window(self) -> None:
        """Show a longer time in the graphs, or the shortest again."""
        names = list(WINDOWS)
        self._window = names[(names.index(self._window) + 1) % len(names)]
        self.notify(f"The graphs show the last {self._window}.", timeout=2)
        self.show_state(self.tui.state)

    def action_freeze(self) -> None:
        """Stop showing changes, or show them again."""
        self._frozen = not self._frozen
        self.notify("Frozen: press f to go on." if self._frozen else "Showing changes again.", timeout=2)
        self.show_state(self.tui.state)

    def action_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.display = True
        field.focus()

    def action_copy_id(self) -> None:
        """Copy the id of the request under the cursor."""
        selected = self.query_one(Table).selected
        if selected is not None:
            self.post_message(actions.CopyText(selected, "the request's id"))

    @on(Input.Changed, "#filter")
    def filter_rows(self, event: Input.Changed) -> None:
        self._wanted = event.value
        self.show_state(self.tui.state)

    @on(Input.Submitted, "#filter")
    def leave_filter(self) -> None:
        self.query_one(Table).focus()

    def key_escape(self) -> None:
        """Show all requests again."""
        field = self.query_one("#filter", Input)
        field.value = ""
        field.display = False
        self.query_one(Table).focus()
