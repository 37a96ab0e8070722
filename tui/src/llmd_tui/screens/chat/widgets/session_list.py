"""The list of chats at the left."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from llmd_tui.screens.chat.session_groups import grouped
from llmd_tui.screens.chat.store.records import Session


class SessionList(Vertical):
    """Chats in folders by day, with a field to search them. It only shows what it is given."""

    DEFAULT_CSS = """
    SessionList {
        width: 30;
        border-right: solid $border-blurred;

        Input { background: $boost; }
        OptionList { height: 1fr; background: $background; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """
    BINDING_GROUP_TITLE = "The list of chats"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search", id="chat.search"),
        Binding("p", "act('pin')", "Pin", id="chat.pin"),
        Binding("a", "act('archive')", "Archive", id="chat.archive"),
        Binding("v", "view_archive", "Archived chats", id="chat.view_archive"),
        Binding("r", "act('rename')", "Rename", id="chat.rename"),
        Binding("x,delete", "act('delete')", "Delete", id="chat.delete"),
    ]

    class Opened(Message):
        """A chat is to be opened."""

        def __init__(self, session_id: int) -> None:
            super().__init__()
            self.session_id = session_id

    class Wanted(Message):
        """Something is to be done with a chat: ``pin``, ``archive``, ``rename`` or ``delete``."""

        def __init__(self, action: str, session: Session) -> None:
            super().__init__()
            self.action = action
            self.session = session

    class Refreshed(Message):
        """Other chats are to be shown: those of a search, or those in the archive."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._sessions: dict[str, Session] = {}
        self.archived = False
        """Whether the archive is shown."""

    def compose(self) -> ComposeResult:
        yield Input(placeholder="/ search all chats", select_on_focus=False, compact=True)
        yield OptionList(markup=False, compact=True)

    @property
    def searched(self) -> str:
        """The words that are searched for."""
        return self.query_one(Input).value

    def show(self, sessions: Sequence[Session], today: date, current: int) -> None:
        """Show chats; the cursor stays on the chat it is on, at first on the current one."""
        options = self.query_one(OptionList)
        highlighted = options.highlighted_option
        kept = highlighted.id if highlighted and highlighted.id in self._ids(sessions) else str(current)
        self._sessions = {str(one.session_id): one for one in sessions}
        rows = list(self._rows(sessions, today, current))
        options.clear_options()
        options.add_options(rows)
        ids = [row.id for row in rows]
        options.highlighted = ids.index(kept) if kept in ids else None

    def action_search(self) -> None:
        self.query_one(Input).focus()

    def action_view_archive(self) -> None:
        self.archived = not self.archived
        self.post_message(self.Refreshed())

    def action_act(self, action: str) -> None:
        option = self.query_one(OptionList).highlighted_option
        if option is not None and option.id in self._sessions:
            self.post_message(self.Wanted(action, self._sessions[option.id]))

    def focus_list(self) -> None:
        """Put the cursor into the list."""
        self.query_one(OptionList).focus()

    @on(Input.Changed)
    def search(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Refreshed())

    @on(Input.Submitted)
    def to_the_results(self, event: Input.Submitted) -> None:
        event.stop()
        options = self.query_one(OptionList)
        options.action_first()
        options.focus()

    @on(OptionList.OptionSelected)
    def open_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option.id in self._sessions:
            self.post_message(self.Opened(self._sessions[event.option.id].session_id))

    def _rows(self, sessions: Sequence[Session], today: date, current: int) -> list[Option]:
        title = [Option("archived chats – v shows the others", disabled=True)] if self.archived else []
        if not sessions:
            nothing = "nothing found" if self.searched else "no chats yet"
            return [*title, Option(nothing, disabled=True)]
        rows = list(title)
        for name, members in grouped(sessions, today):
            rows.append(Option(f"─ {name}", disabled=True))
            for one in members:
                mark = "▸" if one.session_id == current else " "
                rows.append(Option(f"{mark} {one.name}", id=str(one.session_id)))
        return rows

    @staticmethod
    def _ids(sessions: Sequence[Session]) -> set[str]:
        return {str(one.session_id) for one in sessions}
