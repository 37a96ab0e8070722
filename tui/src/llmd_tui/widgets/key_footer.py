"""The line of keys at the bottom: as many as fit, each one whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.widget import Widget
from textual.widgets import Footer
from textual.widgets._footer import FooterKey  # it has no public name

from llmd_tui.keys import rank

ALWAYS = "help"
"""The action whose key is always shown: it lists the others."""
MANY = 10_000
SPACES = 3
COMPACT_SPACES = 2
"""Cells around the name of a key and its description."""


class KeyFooter(Footer):
    """Shows first what the focused part and the screen do, then what every table and every screen do.

    A key that does not fit is left out with those after it; the help and the command palette list them.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._width = 0
        """The width for which the keys were chosen."""

    def compose(self) -> ComposeResult:
        self._width = self.size.width
        keys = [one for one in super().compose() if isinstance(one, FooterKey)]
        palette = [one for one in keys if one.has_class("-command-palette")]
        help_keys = [one for one in keys if one.action == ALWAYS]
        pinned = [*help_keys, *palette]
        # Before the first layout there is no width: all keys are there until it is known.
        room = (self._width or MANY) - sum(map(self._cells, pinned))
        yield from self._fitting(self._by_rank([one for one in keys if one not in pinned]), room)
        yield from pinned

    def on_resize(self, event: events.Resize) -> None:
        if event.size.width != self._width:
            self.call_after_refresh(self.recompose)

    def _by_rank(self, keys: Sequence[FooterKey]) -> list[FooterKey]:
        owners = {one.binding.action: one.node for one in self.screen.active_bindings.values()}
        return sorted(keys, key=lambda one: rank(owners.get(one.action)))

    def _fitting(self, keys: Sequence[FooterKey], room: int) -> Iterator[Widget]:
        for key in keys:
            room -= self._cells(key)
            if room < 0:
                return
            yield key

    def _cells(self, key: FooterKey) -> int:
        is_compact = self.compact and not key.has_class("-command-palette")
        return (
            cell_len(key.key_display) + cell_len(key.description) + (COMPACT_SPACES if is_compact else SPACES)
        )
