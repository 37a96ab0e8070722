"""Questions that cover the screen until they are answered. Esc leaves all of them without a change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, OptionList, Static, TextArea
from textual.widgets.option_list import Option

Result = TypeVar("Result")


class Dialog(ModalScreen[Result]):
    """A box in the middle with a title."""

    DEFAULT_CSS = """
    Dialog {
        align: center middle;

        #box {
            width: 80%;
            max-width: 90;
            height: auto;
            max-height: 90%;
            border: round $primary;
            background: $surface;
            padding: 0 1;
        }
        #box OptionList, #box TextArea, #box Input {
            background: $boost;
        }
        #box TextArea {
            height: 12;
        }
        #question {
            height: auto;
        }
        #wrong {
            height: auto;
            text-style: bold;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "Cancel", id="chat.cancel")]

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

    def compose(self) -> ComposeResult:
        with Vertical(id="box") as box:
            box.border_title = self._title
            yield from self.compose_box()
        yield Footer()

    def compose_box(self) -> ComposeResult:
        yield from ()

    def action_cancel(self) -> None:
        self.dismiss(None)


class Confirm(Dialog[bool]):
    """Asks whether to do something."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "answer(True)", "Yes"),
        Binding("n", "answer(False)", "No"),
    ]

    def __init__(self, title: str, question: str) -> None:
        super().__init__(title)
        self._question = question

    def compose_box(self) -> ComposeResult:
        yield Static(self._question, id="question", markup=False)

    def action_answer(self, answer: bool) -> None:  # noqa: FBT001 - actions take arguments by position
        self.dismiss(answer)


class AskLine(Dialog[str]):
    """Asks for a line of text."""

    def __init__(self, title: str, text: str = "") -> None:
        super().__init__(title)
        self._text = text

    def compose_box(self) -> ComposeResult:
        yield Input(self._text, compact=True, select_on_focus=False)

    @on(Input.Submitted)
    def take(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())


class AskText(Dialog[str]):
    """Asks for a text of several lines."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+s", "take", "Save", priority=True)]

    def __init__(self, title: str, text: str = "") -> None:
        super().__init__(title)
        self._text = text

    def compose_box(self) -> ComposeResult:
        yield TextArea(self._text, compact=True)

    def action_take(self) -> None:
        self.dismiss(self.query_one(TextArea).text.strip())


class Choose(Dialog[str]):
    """Asks for one of several values; typing filters them."""

    def __init__(self, title: str, rows: Sequence[tuple[str, str]], chosen: str = "") -> None:
        """``rows`` have the value and the line that is shown."""
        super().__init__(title)
        self._rows = rows
        self._chosen = chosen

    def compose_box(self) -> ComposeResult:
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
