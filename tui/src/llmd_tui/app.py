"""The application: it follows a daemon, shows one screen at a time, and does what widgets ask."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from textual import on, work
from textual.app import App
from textual.binding import Binding, BindingType

from llmd.api.errors import LlmdError
from llmd_tui import actions
from llmd_tui.clipboard import copied_natively, kept_in_file, native_program
from llmd_tui.commands import LlmdCommands
from llmd_tui.daemon.access import Daemon, RefusedError
from llmd_tui.diagnosis import DiagnosisCard, diagnosis
from llmd_tui.keys import keys_text
from llmd_tui.preferences import Preferences
from llmd_tui.screen import DaemonScreen
from llmd_tui.state.daemon_state import DaemonState
from llmd_tui.state.follower import Follower
from llmd_tui.widgets.help_dialog import HelpDialog
from llmd_tui.widgets.status_line import StatusLine
from llmd_tui.widgets.table_rows import Sorting

REFRESH_S = 0.5
"""A screen is shown again at most this often."""
AGAIN_S = 2.0
"""Ctrl-C quits if it is pressed twice within this time."""


class Folders(msgspec.Struct, frozen=True):
    """Where the application keeps things."""

    data: Path
    """Chats."""
    state: Path
    """Preferences and copied texts."""


class LlmdTui(App[None]):
    """The terminal interface to one daemon."""

    TITLE = "llmd"
    ENABLE_COMMAND_PALETTE = True
    COMMANDS: ClassVar[set[Any]] = {LlmdCommands}
    # Notices are at the top right: at the bottom are prompts, the room in the context, and the keys.
    CSS = """
    ToastRack {
        dock: top;
        align: right top;
        margin: 1 0 0 0;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+t", "change_theme", "Theme", id="theme"),
        Binding("d", "diagnosis", "Diagnosis", id="diagnosis"),
        Binding("question_mark,f1", "help", "Help", id="help"),
        Binding("ctrl+c", "copy_or_quit", "Copy or cancel", show=False, priority=True, id="copy"),
        Binding("ctrl+q", "quit", "Quit", priority=True, id="quit"),  # in dialogs too
    ]

    def __init__(
        self,
        daemon: Daemon,
        screens: Mapping[str, type[DaemonScreen]],
        *,
        folders: Folders,
        first: str = "",
        failures: tuple[str, ...] = (),
        environ: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``screens`` are those of `llmd_tui.screen.load_screens`, ``failures`` the ones that did not load.

        ``first`` is the screen to begin with; empty: the one that was shown last.
        """
        super().__init__()
        self.daemon = daemon
        self.folders = folders
        self.clock = clock
        self._environ = environ or {}
        self._screens = screens
        self._failures = failures
        self._first = first
        self._failure = ""
        self._was_lost = False
        self._asked_to_quit = -AGAIN_S
        self.chat_wanted = ""
        """The model of a new chat, until the chat screen has begun it."""
        self.preferences = Preferences.read(folders.state)
        self.follower = Follower(daemon, clock)

    @property
    def state(self) -> DaemonState:
        return self.follower.state

    @property
    def screen_names(self) -> tuple[str, ...]:
        """Names of the screens in the order of their keys."""
        return tuple(self._screens)

    async def on_mount(self) -> None:
        for key, (name, screen) in enumerate(self._screens.items(), start=1):
            self.add_mode(name, screen)
            if key < 10:
                self.bind(str(key), f"open_screen({name!r})", description=f"Open {name}", show=False)
        self.theme = self.preferences.theme
        self.set_class(self.preferences.ascii, "-ascii")
        wanted = self._first or self.preferences.screen
        await self.switch_mode(wanted if wanted in self._screens else next(iter(self._screens)))
        self.run_worker(self.follower.follow(), name="events", exit_on_error=True)
        self.set_interval(REFRESH_S, self.show_changes)
        for failure in self._failures:
            self.notify(failure, severity="warning", timeout=10)

    async def on_unmount(self) -> None:
        await self.daemon.close()

    def show_changes(self) -> None:
        """Show what has changed since the last call."""
        if self.follower.changed.is_set():
            self.follower.changed.clear()
            self.show_now()
            self._fetch_from_another()

    @property
    def shown(self) -> DaemonScreen | None:
        """The present screen; a dialog may be in front of it."""
        stack = reversed(self.screen_stack if self.is_running else ())
        return next((screen for screen in stack if isinstance(screen, DaemonScreen)), None)

    def show_now(self) -> None:
        """Show the state on the present screen, unless it is being made or taken down."""
        screen = self.shown
        if screen is not None and screen.is_mounted:
            self._show_status(screen)
            screen.show_refusal(self.follower.refusal)
            if self.follower.status != "connecting":
                screen.show_state(self.state)

    def open_screen(self, name: str) -> None:
        """Open a screen by name."""
        if name in self._screens and self.current_mode != name:
            self.clear_notifications()  # they are about the screen that is left
            self.switch_mode(name)
            self.prefer(screen=name)

    def keep_sorting(self, name: str, sorting: Sorting) -> None:
        """Sort the table of a screen in this way the next time too."""
        self.prefer(sorting={**self.preferences.sorting, name: sorting})

    def show_failure(self, error: LlmdError) -> None:
        """Say on the status line that something could not be fetched."""
        refused = self.follower.refusal is not None and isinstance(error, RefusedError)
        self._failure = "" if refused else str(error)  # a refusal is shown once
        self.show_now()

    def forget_failure(self) -> None:
        self._failure = ""
        self.show_now()

    def action_open_screen(self, name: str) -> None:
        self.open_screen(name)

    def action_change_theme(self) -> None:
        """Change between the dark and the light theme."""
        dark = self.current_theme.dark
        pair = ("ansi-dark", "ansi-light") if self.current_theme.ansi else ("textual-dark", "textual-light")
        self.theme = pair[dark]

    def action_change_marks(self) -> None:
        """Draw graphs and bars with ASCII characters, or with blocks again."""
        self.prefer(ascii=not self.preferences.ascii)
        self.set_class(self.preferences.ascii, "-ascii")
        self.show_now()
        if self.shown is not None:
            self.shown.begin_fetch()

    def action_help(self) -> None:
        """Show what the screen says, and the keys of the focused part, of the screen and of every screen."""
        legend = self.screen.LEGEND if isinstance(self.screen, DaemonScreen) else {}
        self.push_screen(HelpDialog("Keys", keys_text(self.screen, legend)))

    def action_copy_or_quit(self) -> None:
        """Copy the selected text; without one, cancel what the screen does, or quit if pressed twice."""
        selected = self.screen.get_selected_text()
        if selected:
            self.copy(selected, "the selection")
            self.screen.clear_selection()
            return
        now = self.clock()
        cancel: Callable[[], bool] | None = getattr(self.screen, "cancel", None)
        if cancel is not None and cancel():
            return
        if now - self._asked_to_quit < AGAIN_S:
            self.exit()
        self._asked_to_quit = now
        self.notify("Press Ctrl-C again to quit. The daemon goes on.", timeout=AGAIN_S)

    @work(exclusive=True, group="diagnosis")
    async def action_diagnosis(self) -> None:
        """Show a card about this daemon that can be pasted into an issue."""
        card = await diagnosis(self.daemon, self.state)
        self.push_screen(DiagnosisCard(card))

    def watch_theme(self, theme: str) -> None:
        self.prefer(theme=theme)

    def notify(self, message: str, **options: Any) -> None:
        """Show a notice for a few seconds. Brackets in it are no markup: it may quote errors and names."""
        super().notify(message, **options | {"markup": False})

    def copy(self, text: str, what: str) -> None:
        """Copy a text and say where it went."""
        program = native_program(self._environ)
        if program and copied_natively(text, program):
            self.notify(f"Copied {what}.")
            return
        self.copy_to_clipboard(text)
        try:
            path = kept_in_file(text, self.folders.state)
        except OSError:
            self.notify(f"Asked the terminal to copy {what}.")
        else:
            self.notify(f"Asked the terminal to copy {what}. It is also in {path}.")

    @on(actions.CopyText)
    def copy_text(self, message: actions.CopyText) -> None:
        self.copy(message.text, message.what)

    @on(actions.CancelRequest)
    def cancel_request(self, message: actions.CancelRequest) -> None:
        body = {"request_id": message.request_id}
        self.ask("/llmd/cancel", body, done=f"Cancelled {message.request_id}.")

    @on(actions.UnloadModel)
    def unload_model(self, message: actions.UnloadModel) -> None:
        self.ask("/llmd/stop", {"model": message.name}, done=f"Unloaded {message.name}.")

    @on(actions.ChatWith)
    def chat_with(self, message: actions.ChatWith) -> None:
        self.prefer(model=message.name)
        self.chat_wanted = message.name
        self.open_screen("chat")
        self.show_now()

    @work(group="asked")
    async def ask(self, path: str, body: Mapping[str, Any], *, done: str) -> None:
        """Ask the daemon for something, in the background, and say how it went."""
        try:
            await self.daemon.post(path, body)
        except LlmdError as error:
            self.notify(str(error), severity="error", timeout=10)
        else:
            self.notify(done)
            if self.shown is not None:
                self.shown.begin_fetch()

    def _fetch_from_another(self) -> None:
        """Ask again what the screen shows when the daemon is back: it may be another one."""
        is_back = self._was_lost and self.follower.status == "connected"
        self._was_lost = self.follower.status == "lost"
        if is_back and self.shown is not None:
            self.shown.begin_fetch()

    def _show_status(self, screen: DaemonScreen) -> None:
        follower = self.follower
        reason = "" if follower.status == "connected" else follower.reason
        if follower.refusal is not None and (screen.MANAGES or follower.refusal.may_chat):
            reason = ""  # the screen says it, or does not need what is refused
        for line in screen.query(StatusLine):
            line.show(
                self.state,
                status=follower.status,
                address=self.daemon.address,
                failure=reason or self._failure,
            )

    def prefer(self, **changes: Any) -> None:
        """Remember a choice for the next use."""
        self.preferences = msgspec.structs.replace(self.preferences, **changes)
        self.preferences.write(self.folders.state)
