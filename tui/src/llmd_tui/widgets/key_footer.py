"""The line of keys at the bottom: as many as fit, each one whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget

from llmd_tui.keys import rank

ALWAYS = "help"
"""The action whose key is always shown: it lists the others."""
MARGIN = 1
"""Cells before and after a key, and between its name and its description."""
SEPARATOR = "▏"
"""Stands before the key of the command palette."""
KEY = "bold $footer-key-foreground on $footer-key-background"
DESCRIPTION = "$footer-description-foreground on $footer-description-background"
HOVERED = "$footer-key-foreground on $block-hover-background"


class FooterKey(msgspec.Struct, frozen=True):
    """A key that does something now."""

    key: str
    """As the terminal reports it."""
    name: str
    """As people read it."""
    description: str
    enabled: bool
    tooltip: str
    left: int = 0
    """Cells of the line before it."""

    @property
    def width(self) -> int:
        """Cells of its name and its description, with the margin around each."""
        return cell_len(self.name) + cell_len(self.description) + 3 * MARGIN

    def content(self, *, hovered: bool) -> Content:
        """Return what is shown of it."""
        space, dim = " " * MARGIN, "" if self.enabled else " dim"
        return Content.assemble(
            (f"{space}{self.name}{space}", (HOVERED if hovered else KEY) + dim),
            (f"{self.description}{space}", (HOVERED if hovered else DESCRIPTION) + dim),
        )


class KeyFooter(Widget, can_focus=False):
    """Shows first what the focused part and the screen do, then what every table and every screen do.

    A key that does not fit is left out with those after it; the help and the command palette list them.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    KeyFooter {
        dock: bottom;
        height: 1;
        color: $footer-foreground;
        background: $footer-background;
    }
    """

    def __init__(self, *, with_palette: bool = True) -> None:
        super().__init__()
        self._with_palette = with_palette
        self._found: Sequence[FooterKey] = ()
        """Those that may be left out, the most important first."""
        self._always: Sequence[FooterKey] = ()
        self._right: Sequence[FooterKey] = ()
        """The key of the command palette, if it is shown."""
        self._hovered = ""

    @property
    def keys(self) -> Sequence[FooterKey]:
        """The keys that are shown, from left to right."""
        right = self.size.width - _width(self._right)
        room = right - len(SEPARATOR) * len(self._right) - _width(self._always)
        left = [*_fitting(self._found, room), *self._always]
        return [*_placed(left, 0), *_placed(self._right, right)]

    def render(self) -> Content:
        parts, end = [], 0
        for one in self.keys:
            if one.left > end:
                parts.append(Content(" " * (one.left - end - len(SEPARATOR))))
                parts.append(Content.styled(SEPARATOR, "$foreground 20%"))
            parts.append(one.content(hovered=one.key == self._hovered))
            end = one.left + one.width
        return Content("").join(parts)

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._find_later)

    def on_unmount(self) -> None:
        self.screen.bindings_updated_signal.unsubscribe(self)

    def on_click(self, event: events.Click) -> None:
        """Do what the key does."""
        clicked = self._at(event.x)
        if clicked is not None and clicked.enabled:
            self.app.simulate_key(clicked.key)
        elif clicked is not None:
            self.app.bell()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self._hover(self._at(event.x))

    def on_leave(self) -> None:
        self._hover(None)

    def _find_later(self, screen: Screen[Any]) -> None:
        # If another window is in front, nothing has the focus, and all is as it was when this one returns.
        if screen.app.app_focus:
            # A widget that gets the focus only knows it then.
            self.call_after_refresh(self._find)

    def _find(self) -> None:
        """Find out which keys do something now."""
        if not self.is_attached:
            return  # the dialog has been closed since
        ranked: dict[str, tuple[int, FooterKey]] = {}
        self._right = ()
        for key, (owner, binding, enabled, tooltip) in self.screen.active_bindings.items():
            name = self.app.get_key_display(binding)
            found = FooterKey(binding.key, name, binding.description, enabled, tooltip)
            if key == self.app.COMMAND_PALETTE_BINDING:
                self._right = (found,) if self._with_palette else ()
            elif binding.show:
                ranked.setdefault(binding.action, (rank(owner), found))
        self._always = [found for action, (_, found) in ranked.items() if action == ALWAYS]
        by_rank = [found for _, found in sorted(ranked.values(), key=lambda one: one[0])]
        self._found = [one for one in by_rank if one not in self._always]
        self.refresh()

    def _at(self, column: int) -> FooterKey | None:
        return next((one for one in self.keys if one.left <= column < one.left + one.width), None)

    def _hover(self, key: FooterKey | None) -> None:
        hovered = key.key if key else ""
        if hovered != self._hovered:
            self._hovered = hovered
            self.tooltip = (key.tooltip if key else "") or None
            self.refresh()


def _fitting(keys: Sequence[FooterKey], room: int) -> Iterator[FooterKey]:
    for one in keys:
        room -= one.width
        if room < 0:
            return
        yield one


def _placed(keys: Sequence[FooterKey], left: int) -> Iterator[FooterKey]:
    """Put keys one after the other."""
    for one in keys:
        yield msgspec.structs.replace(one, left=left)
        left += one.width


def _width(keys: Sequence[FooterKey]) -> int:
    return sum(one.width for one in keys)
