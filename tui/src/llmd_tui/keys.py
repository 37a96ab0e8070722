"""Which keys do something now, in words, and in which order they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.text import Text
from textual.app import App
from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import Screen

from llmd_tui.widgets.filter_table import FilterTable

EVERYWHERE = "On every screen"
MEANING = "What the titles mean"
MOVING = "To move and to edit"


def rank(owner: DOMNode | None) -> int:
    """Return the place of a key by what it belongs to: first the screen and what is focused on it."""
    if isinstance(owner, App):
        return 2
    return 1 if isinstance(owner, FilterTable) else 0


def keys_text(screen: Screen[Any], legend: Mapping[str, str] | None = None) -> Text:
    """Return the keys of a screen and of what is focused on it, under headings, then its ``legend``."""
    groups: dict[tuple[int, str], dict[str, list[Binding]]] = {}
    for owner, binding, enabled, _ in screen.active_bindings.values():
        if enabled and binding.description and not binding.system:
            group = groups.setdefault(_group(owner, binding), {})
            group.setdefault(binding.action, []).append(binding)
    rows = {
        heading: [_row(screen.app, bindings) for bindings in groups[place, heading].values()]
        for place, heading in sorted(groups, key=lambda one: one[0])
    }
    if legend:
        rows[MEANING] = list(legend.items())
    width = max((cell_len(keys) for some in rows.values() for keys, _ in some), default=0)
    shown = Text()
    for heading, some in rows.items():
        shown.append(f"{heading}\n", "bold")
        for keys, description in some:
            shown.append(f"  {keys}{' ' * (width - cell_len(keys))}  {description}\n")
        shown.append("\n")
    shown.rstrip()
    return shown


def _group(owner: DOMNode, binding: Binding) -> tuple[int, str]:
    """Return the place and the heading of the keys to which this one belongs."""
    heading = EVERYWHERE if isinstance(owner, App) else owner.BINDING_GROUP_TITLE
    if not heading or _is_of_textual(owner, binding):
        return 3, MOVING
    return rank(owner), heading


def _is_of_textual(owner: DOMNode, binding: Binding) -> bool:
    """Whether a class of Textual's binds the key, such as that of any field."""
    for one in type(owner).__mro__:
        bound = Binding.make_bindings(one.__dict__.get("BINDINGS", ()))
        if any(binding.action == known.action for known in bound):
            return one.__module__.startswith("textual.")
    return False


def _row(app: App[Any], bindings: Sequence[Binding]) -> tuple[str, str]:
    keys = dict.fromkeys(app.get_key_display(one) for one in bindings)
    return ", ".join(keys), bindings[0].description
