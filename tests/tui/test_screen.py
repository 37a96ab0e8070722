"""Screens are found as plugins, and those that do not load are named."""

from __future__ import annotations

from importlib.metadata import EntryPoint

from llmd_tui.screen import GROUP, ORDER, load_screens
from tests.tui.test_app import First


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, GROUP)


def test_a_screen_that_does_not_load_leaves_the_others() -> None:
    entries = {
        "first": entry("first", f"{First.__module__}:First"),
        "absent": entry("absent", "no_such_module:Screen"),
        "wrong": entry("wrong", "json:JSONDecoder"),
    }
    loaded = dict(load_screens(entries))
    assert loaded["first"] is First
    assert loaded["absent"] == (
        "the screen 'absent' of no_such_module:Screen cannot be loaded: No module named 'no_such_module'"
    )
    assert "not a subclass of DaemonScreen: json:JSONDecoder" in str(loaded["wrong"])


def test_our_screens_are_those_of_the_order() -> None:
    import tomllib
    from pathlib import Path

    project = tomllib.loads((Path(__file__).parents[2] / "tui" / "pyproject.toml").read_text())
    assert tuple(project["project"]["entry-points"][GROUP]) == ORDER
