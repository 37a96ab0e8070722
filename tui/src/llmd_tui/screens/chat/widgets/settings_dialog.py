"""The panel of sampling settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Input, Label, Static

from llmd.api.errors import LlmdError
from llmd_tui.screens.chat.generation_settings import (
    DEFAULT,
    NUMBERS,
    THINKING,
    with_number,
    with_schema,
    with_thinking,
)
from llmd_tui.screens.chat.model_settings import Ranges, checked
from llmd_tui.screens.chat.store.records import Settings
from llmd_tui.widgets.dialog import Dialog

REASONING = "reasoning"
SCHEMA = "schema"
HINTS = {
    "max_tokens": "until the context is full",
    "seed": "random",
    REASONING: "on, off or default",
    SCHEMA: "a file with a JSON schema",
}
MODEL_CHOICE = "the model's default"
NOTHING: Mapping[str, Any] = {}


class SettingsDialog(Dialog[Settings]):
    """One line for each setting; an empty one leaves it to the model."""

    DEFAULT_CSS = """
    SettingsDialog {
        VerticalScroll { height: auto; max-height: 60vh; margin-bottom: 1; }
        Horizontal { height: 1; }
        Horizontal Label { width: 22; }
        Horizontal Input { width: 1fr; background: $boost; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "take", "Save"),
        Binding("down", "app.focus_next", "Next", show=False, priority=True),
        Binding("up", "app.focus_previous", "Previous", show=False, priority=True),
    ]

    def __init__(
        self, settings: Settings, ranges: Ranges = NOTHING, model_values: Mapping[str, str] = NOTHING
    ) -> None:
        """``ranges`` are what the daemon accepts, ``model_values`` what applies to an empty line."""
        super().__init__("Settings of this chat")
        self._settings = settings
        self._ranges = ranges
        self._model_values = model_values

    def compose_body(self) -> ComposeResult:
        with VerticalScroll(can_focus=False):
            for name, value in self._lines():
                with Horizontal():
                    yield Label(name)
                    yield Input(value, id=name, placeholder=self._hint(name), compact=True)
        yield Static(classes="wrong", markup=False)

    def action_take(self) -> None:
        values = {one.id or "": one.value.strip() for one in self.query(Input)}
        settings = self._settings
        try:
            for name in NUMBERS:
                settings = with_number(settings, name, values[name])
            settings = checked(settings, self._ranges)
            settings = with_thinking(settings, values[REASONING] or DEFAULT)
            if values[SCHEMA] != self._settings.schema_file:
                settings = with_schema(settings, values[SCHEMA])
        except LlmdError as error:
            self.query_one(".wrong", Static).update(f"✗ {error}")
        else:
            self.dismiss(settings)

    @on(Input.Submitted)
    def submit(self) -> None:
        self.action_take()

    @on(Input.Changed)
    def forget_wrong(self) -> None:
        self.query_one(".wrong", Static).update("")

    def _hint(self, name: str) -> str:
        value = self._model_values.get(name)
        return HINTS.get(name, MODEL_CHOICE) if value is None else f"{MODEL_CHOICE}: {value}"

    def _lines(self) -> Iterator[tuple[str, str]]:
        settings = self._settings
        for name in NUMBERS:
            value = getattr(settings, name)
            yield name, "" if value is None else f"{value}"
        words = {value: word for word, value in THINKING.items()}
        yield REASONING, "" if settings.thinking is None else words[settings.thinking]
        yield SCHEMA, settings.schema_file
