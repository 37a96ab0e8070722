"""The keys at the bottom: none is cut, on any screen and at any width."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

import pytest
from textual.binding import Binding, BindingType
from textual.pilot import Pilot
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

from llmd_tui.screen import ORDER, DaemonScreen, found_screens, load_screens
from llmd_tui.widgets.choice import Choice, Option
from tests.tui.conftest import MakeTui, settled
from tests.tui.pilots import lines, until
from tests.tui.scripted_daemon import ScriptedDaemon, model

WIDTHS = (80, 100, 120)


def real_screen(name: str) -> type[DaemonScreen]:
    """Return a screen of ours."""
    ((_, found),) = load_screens({name: found_screens()[name]})
    assert not isinstance(found, str)
    return found


class Crowded(DaemonScreen):
    NAME = "crowded"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(letter, f"nothing('{letter}')", f"Key {number}")
        for number, letter in enumerate("abcefghijklm")
    ]


def shown_keys(pilot: Pilot[None]) -> list[str]:
    """Return the descriptions of the shown keys, which are whole and beside each other."""
    footer = pilot.app.screen.query_one(Footer)
    keys = list(footer.query(FooterKey))
    line = lines(pilot.app)[footer.region.y]
    for key in keys:
        assert f"{key.key_display} {key.description}" in line
        assert footer.region.contains_region(key.region)
    assert all(one.region.right <= two.region.x for one, two in pairwise(keys))
    return [key.description for key in keys]


async def at_width(pilot: Pilot[None], width: int) -> list[str]:
    """Return the keys that are shown at a width."""
    await pilot.resize_terminal(width, 24)
    footer = pilot.app.screen.query_one(Footer)
    await until(pilot, lambda: footer.size.width == width and footer.query(FooterKey))
    await settled(pilot)
    return shown_keys(pilot)


@pytest.mark.parametrize("name", ORDER)
async def test_no_screen_cuts_a_key(daemon: ScriptedDaemon, make_tui: MakeTui, name: str) -> None:
    daemon.snapshot(models=(model("guide"),))
    async with make_tui(real_screen(name)).run_test(size=(80, 24)) as pilot:
        for width in WIDTHS:
            assert (await at_width(pilot, width))[-2:] == ["Help", "palette"]


async def test_wider_terminals_show_more_of_the_same_keys(make_tui: MakeTui) -> None:
    async with make_tui(Crowded).run_test(size=(80, 24)) as pilot:
        found = [(await at_width(pilot, width))[:-2] for width in WIDTHS]
        narrow, middle, wide = found
        assert len(narrow) < len(middle) < len(wide)
        assert wide[: len(middle)] == middle
        assert middle[: len(narrow)] == narrow == [f"Key {number}" for number in range(len(narrow))]


@pytest.mark.parametrize(
    ("width", "keys"),
    [
        (80, ["Chat", "Load", "Unload", "Pull", "Details", "Remove"]),
        (120, ["Chat", "Load", "Unload", "Pull", "Details", "Remove", "Copy", "Convert", "Filter", "Sort"]),
    ],
)
async def test_keys_of_every_table_come_after_those_of_the_screen(
    make_tui: MakeTui, width: int, keys: list[str]
) -> None:
    async with make_tui(real_screen("models")).run_test(size=(width, 24)) as pilot:
        assert (await at_width(pilot, width))[:-2] == keys


async def test_keys_of_dialogs_are_whole_too(make_tui: MakeTui) -> None:
    async with make_tui(Crowded).run_test(size=(80, 24)) as pilot:
        options = [Option(letter, f"{letter}ey of an answer") for letter in "ABDFGH"]
        pilot.app.push_screen(Choice("Choose", "One of many?", options))
        await settled(pilot)
        assert shown_keys(pilot)[0] == "Close"
