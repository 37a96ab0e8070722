"""The command palette: everything that a key does, screens, and models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from llmd_tui import actions

if TYPE_CHECKING:
    from llmd_tui.app import LlmdTui


class Entry(NamedTuple):
    """A line of the palette."""

    title: str
    run: Callable[[], object]
    help: str


class LlmdCommands(Provider):
    """The commands of the application for the palette."""

    async def discover(self) -> Hits:
        for entry in self.entries():
            yield DiscoveryHit(entry.title, entry.run, help=entry.help)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for entry in self.entries():
            score = matcher.match(entry.title)
            if score > 0:
                yield Hit(score, matcher.highlight(entry.title), entry.run, help=entry.help)

    def entries(self) -> Iterator[Entry]:
        """Yield all lines."""
        tui = cast("LlmdTui", self.app)
        for name in tui.screen_names:
            yield Entry(f"Open {name}", partial(tui.open_screen, name), "Show this screen")
        for name, model in tui.state.models.items():
            yield Entry(f"Chat with {name}", partial(self._post, actions.ChatWith(name)), "Open a chat")
            if model.status == "loaded":
                yield Entry(
                    f"Unload {name}", partial(self._post, actions.UnloadModel(name)), "Free its memory"
                )
        yield Entry(
            "Diagnosis card",
            tui.action_diagnosis,
            "Versions, devices, rates and errors, to paste into an issue",
        )
        yield Entry("Light or dark theme", tui.action_change_theme, "Change the theme")
        for theme in sorted(tui.available_themes):
            yield Entry(f"Theme {theme}", partial(self._set_theme, theme), "Use this theme")
        yield Entry("Graphs in ASCII or in blocks", tui.action_change_marks, "For fonts without blocks")
        yield Entry("Keys", tui.action_help, "Show the keys of this screen")
        yield Entry("Quit", tui.exit, "Leave; the daemon goes on")

    def _post(self, message: actions.ChatWith | actions.UnloadModel) -> None:
        self.app.post_message(message)

    def _set_theme(self, theme: str) -> None:
        self.app.theme = theme
