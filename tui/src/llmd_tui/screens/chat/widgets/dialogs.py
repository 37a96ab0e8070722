"""Questions that cover the screen until they are answered. Esc leaves all of them without a change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, OptionList, TextArea
from textual.widgets.option_list import Option

from llmd_tui.widgets.dialog import Dialog, text


class Confirm(Dialog[bool]):
    """Asks whether to do something."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "answer(True)", "Yes"),
        Binding("n", "answer(False)", "No"),
    ]

    def __init__(self, title: str, question: str) -> None:
        super().__init__(title)
        self._question = question

    def compose_body(self) -> ComposeResult:
        yield text(self._question)

    def action_answer(self, answer: bool) -> None:  # noqa: FBT001 - actions take arguments by position
        self.dismiss(answer)


class AskLine(Dialog[str]):
    """Asks for a line of text."""

    DEFAULT_CSS = """
    AskLine Input { background: $boost; margin-bottom: 1; }
    """

    def __init__(self, title: str, value: str = "") -> None:
        super().__init__(title)
        self._value = value

    def compose_body(self) -> ComposeResult:
        yield Input(self._value, compact=True, select_on_focus=False)

    @on(Input.Submitted)
    def take(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())


class AskText(Dialog[str]):
    """Asks for a text of several lines."""

    DEFAULT_CSS = """
    AskText TextArea { height: 12; background: $boost; margin-bottom: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+s", "take", "Save", priority=True)]

    def __init__(self, title: str, value: str = "") -> None:
        super().__init__(title)
        self._value = value

    def compose_body(self) -> ComposeResult:
        yield TextArea(self._value, compact=True)

    def on_mount(self) -> None:
        written = self.query_one(TextArea)
        written.move_cursor(written.document.end)

    def action_take(self) -> None:
        self.dismiss(self.query_one(TextArea).text.strip())


class Choose(Dialog[str]):
    """Asks for one of several values; typing filters them."""

    DEFAULT_CSS = """
    Choose {
        Input { background: $boost; }
        OptionList { height: auto; max-height: 60vh; background: $boost; margin-bottom: 1; }
    }
    """

    def __init__(self, title: str, rows: Sequence[tuple[str, str]], chosen: str = "") -> None:
        """``rows`` have the value and the line that is shown."""
        super().__init__(title)
        self._rows = rows
        self._chosen = chosen

    def compose_body(self) -> ComposeResult:
        yield Input(placeholder="type to filter", compact=True)
        yield OptionList(markup=False, compact=True)

    def on_mount(self) -> None:
        self.filter("")
        values = [value for value, _ in self._rows]
        if self._chosen in values:
            self.query_one(OptionList).highlighted = values.index(self._chosen)

    def filter(self, words: str) -> None:
        """Show the rows that contain all words."""
        wanted = words.lower().split()
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(
            Option(line, id=str(place))
            for place, (_, line) in enumerate(self._rows)
            if all(word in line.lower() for word in wanted)
        )
        options.highlighted = 0 if options.option_count else None

    @on(Input.Changed)
    def filter_typed(self, event: Input.Changed) -> None:
        self.filter(event.value)

    @on(Input.Submitted)
    def take_highlighted(self) -> None:
        option = self.query_one(OptionList).highlighted_option
        if option is not None:
            self._take(option)

    @on(OptionList.OptionSelected)
    def take_selected(self, event: OptionList.OptionSelected) -> None:
        self._take(event.option)

    def key_down(self) -> None:
        self.query_one(OptionList).focus()

    def _take(self, option: Option) -> None:
        self.dismiss(self._rows[int(option.id or 0)][0])
