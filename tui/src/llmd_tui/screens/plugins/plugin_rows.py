"""The table of plugins, and what is said about the one under the cursor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llmd_tui.widgets.details import Section
from llmd_tui.widgets.plain_text import one_line, to_type
from llmd_tui.widgets.table_rows import Column, Row
from llmd_tui.widgets.words import seconds

COLUMNS: Sequence[Column] = (
    Column("NAME", 16),
    Column("STATE", 0),
    Column("PROVIDES", 0, 70),
    Column("VERSION", 9),
    Column("DISTRIBUTION", 20, 100),
    Column("TIME", 8, 120, is_number=True),
)
STATES = {
    "failed": "✗ failed",
    "missing": "✗ missing",
    "disabled": "– disabled",
    "unknown": "○ not loaded",
    "ok": "● ok",
}
"""In the order in which the table is sorted."""
PHASES = {
    "name": "only its name was read",
    "description": "it was imported and described itself",
    "probe": "it was imported and its devices were probed",
    "open": "its devices were opened",
}
TIMES = ("import_ms", "probe_ms")
"""Times that a daemon may tell, in milliseconds."""


def key_of(plugin: Mapping[str, Any]) -> str:
    """Return what identifies a plugin: two distributions may use one name."""
    return f"{plugin.get('distribution')}/{plugin.get('name')}"


def row_of(plugin: Mapping[str, Any]) -> Row:
    """Return the row of a plugin."""
    name, version, distribution = (_text(plugin, field) for field in ("name", "version", "distribution"))
    state, provides = state_words(plugin), provided(plugin)
    total = sum(plugin[field] for field in TIMES if plugin.get(field) is not None)
    place = list(STATES).index(plugin["state"]) if plugin.get("state") in STATES else len(STATES)
    return Row(
        key_of(plugin),
        (name, state, provides or "-", version, distribution, seconds(total or None)),
        (name.casefold(), place, provides or None, version, distribution.casefold(), total or None),
        "bold" if plugin.get("state") == "failed" else "",
    )


def state_words(plugin: Mapping[str, Any]) -> str:
    """Return the state of a plugin with its reason."""
    state = STATES.get(str(plugin.get("state")), f"? {_text(plugin, 'state')}")
    reason = _text(plugin, "reason")
    return f"{state}: {reason}" if reason else state


def provided(plugin: Mapping[str, Any]) -> str:
    """Return what a plugin provides, by kind."""
    kinds: Mapping[str, Sequence[str]] = plugin.get("provides") or {}
    return "; ".join(
        f"{one_line(kind)} {', '.join(map(one_line, names))}" for kind, names in kinds.items() if names
    )


def summary(plugin: Mapping[str, Any]) -> list[Section]:
    """Return the details of a plugin."""
    times = [
        f"{field.removesuffix('_ms')} {seconds(plugin[field])}"
        for field in TIMES
        if plugin.get(field) is not None
    ]
    phase = PHASES.get(str(plugin.get("phase")), "")
    state = str(plugin.get("state") or "unknown")
    reason = _text(plugin, "reason") or ("it gives no reason" if state == "failed" else "")
    return [
        Section(state.capitalize(), reason),
        Section("Fix", _text(plugin, "fix")),
        Section("Provides", provided(plugin)),
        Section(
            "From",
            f"{_text(plugin, 'distribution')} {_text(plugin, 'version')}, module {_text(plugin, 'module')}",
        ),
        Section("Reached", phase),
        Section("Time", ", ".join(times)),
    ]


def commands(plugin: Mapping[str, Any]) -> list[str]:
    """Return the commands that change a plugin, the most likely one first."""
    name, distribution = _text(plugin, "name"), _text(plugin, "distribution")
    switch = [f"llmd plugins disable {name}", f"llmd plugins enable {name}"]
    if plugin.get("state") == "disabled":
        switch.reverse()
    others = [f"llmd plugins uninstall {distribution}", f"llmd plugins install --upgrade {distribution}"]
    fix = to_type(_text(plugin, "fix"))
    first = [fix] if fix.startswith("llmd ") else []
    return list(dict.fromkeys([*first, *switch, *others]))


def _text(plugin: Mapping[str, Any], field: str) -> str:
    return one_line(str(plugin.get(field) or ""))
