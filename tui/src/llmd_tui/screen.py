"""The base of every screen, and how screens are found.

A screen is a plugin of the terminal interface: a subclass of `DaemonScreen` behind an entry point of the
group ``llmd_tui``. Its name there is what ``llmd tui NAME`` opens.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Container
from textual.screen import Screen
from textual.widgets import Static

from llmd.api.errors import LlmdError
from llmd_tui import actions
from llmd_tui.daemon.access import Daemon, RefusedError
from llmd_tui.state.daemon_state import DaemonState
from llmd_tui.widgets.filter_table import FilterTable
from llmd_tui.widgets.key_footer import KeyFooter
from llmd_tui.widgets.plain_text import to_type
from llmd_tui.widgets.status_line import StatusLine

if TYPE_CHECKING:
    from llmd_tui.app import LlmdTui

T = TypeVar("T")
GROUP = "llmd_tui"
ORDER = ("chat", "models", "devices", "monitor", "kv", "plugins", "logs")
"""Our screens in the order of their keys; those of others follow by name."""


class DaemonScreen(Screen[None]):
    """A screen about a daemon.

    The application calls `show_state` at most twice a second, and only while the screen is shown. A screen
    that needs more than the events asks for it in `fetch`.
    """

    DEFAULT_CSS = """
    DaemonScreen {
        #body {
            height: 1fr;
        }
        .title {
            color: $text-muted;
            text-style: bold;
            height: 1;
        }
        #refused {
            display: none;
            height: 1fr;
            padding: 1 2;
        }
        &.-refused #body {
            display: none;
        }
        &.-refused #refused {
            display: block;
        }
    }
    """
    NAME: ClassVar[str] = ""
    """Name of the entry point."""
    LEGEND: ClassVar[Mapping[str, str]] = {}
    """What titles on the screen mean, for its help."""
    MANAGES: ClassVar[bool] = True
    """Whether it needs a key that may manage the daemon; without one, it says so in place of its body."""
    FETCH_S: ClassVar[float | None] = None
    """Seconds between calls of `fetch` while the screen is shown; None: it is called once when shown."""
    AUTO_FOCUS: ClassVar[str | None] = ""  # so that digits open screens at once

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.BINDING_GROUP_TITLE = f"The screen {cls.NAME}"

    def compose(self) -> ComposeResult:
        yield StatusLine(self.NAME)
        with Container(id="body"):
            yield from self.compose_body()
        yield Static(id="refused", markup=False)
        yield KeyFooter()

    def compose_body(self) -> ComposeResult:
        """Yield the widgets between the status line and the footer."""
        yield from ()

    def show_state(self, state: DaemonState) -> None:
        """Show the state of the daemon."""

    def show_refusal(self, refusal: RefusedError | None) -> None:
        """Say in place of the body that the daemon refuses what the screen needs; None: it does not."""
        if refusal is not None and self.MANAGES:
            self.query_one("#refused", Static).update(refusal_words(refusal))
        self.set_class(refusal is not None and self.MANAGES, "-refused")

    async def fetch(self) -> None:
        """Ask the daemon for what its events do not tell.

        Raises:
            LlmdError: it failed; the screen stays as it is, and the status line says why.
        """

    @property
    def tui(self) -> LlmdTui:
        """The application."""
        return cast("LlmdTui", self.app)

    @property
    def daemon(self) -> Daemon:
        return self.tui.daemon

    # Textual calls the handlers of every base class: a subclass with one of its own must not call these.

    def on_mount(self) -> None:
        if self.FETCH_S is not None:
            self.set_interval(self.FETCH_S, self._fetch_if_shown)

    def on_screen_resume(self) -> None:
        self.show_state(self.tui.state)
        self.begin_fetch()

    def copy_fix(self, fix: str) -> None:
        """Copy the command in a fix; an empty fix says that none is needed."""
        if fix:
            self.post_message(actions.CopyText(to_type(fix), "the fix"))
        else:
            self.notify("There is nothing to fix.")

    @on(FilterTable.Sorted)
    def keep_sorting(self, message: FilterTable.Sorted) -> None:
        self.tui.keep_sorting(self.NAME, message.sorting)

    async def told(self, doing: Awaitable[T]) -> T | None:
        """Wait for something; say what went wrong."""
        try:
            return await doing
        except LlmdError as error:
            self.notify(str(error), severity="error", timeout=10)
            return None

    @work(exclusive=True, group="fetch")
    async def begin_fetch(self) -> None:
        """Fetch now, in the background; an earlier fetch that has not ended is cancelled."""
        if self.MANAGES and self.tui.follower.refusal is not None:
            self.tui.show_now()
            return
        try:
            await self.fetch()
        except LlmdError as error:
            self.tui.show_failure(error)
        else:
            self.tui.forget_failure()

    def _fetch_if_shown(self) -> None:
        if self.tui.shown is self:
            self.begin_fetch()


def refusal_words(refusal: RefusedError) -> str:
    """Say what the daemon refuses, and what to do."""
    if not refusal.may_chat:
        return f"{refusal}\n\nSet LLMD_API_KEY to a key of this daemon and start llmd tui again."
    return (
        f"This needs a key that may manage the daemon: {refusal}.\n\n"
        "Set LLMD_API_KEY to such a key and start llmd tui again. The chat works without."
    )


def found_screens() -> dict[str, EntryPoint]:
    """Return the entry points of all screens by name, in the order of their keys."""
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    known = [name for name in ORDER if name in found]
    return {name: found[name] for name in [*known, *sorted(found.keys() - set(known))]}


def load_screens(names: dict[str, EntryPoint]) -> Iterator[tuple[str, type[DaemonScreen] | str]]:
    """Yield each screen by name, or in words why it cannot be loaded."""
    for name, entry in names.items():
        try:
            loaded: Any = entry.load()
        except Exception as error:  # noqa: BLE001 - code of others must not end the interface
            yield name, f"the screen {name!r} of {entry.value} cannot be loaded: {error}"
            continue
        if isinstance(loaded, type) and issubclass(loaded, DaemonScreen):
            yield name, loaded
        else:
            yield name, f"the screen {name!r} is not a subclass of DaemonScreen: {entry.value}"
