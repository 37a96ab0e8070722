"""The keys at the bottom: none is cut, on any screen and at any width."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

import pytest
from textual.binding import Binding, BindingType
from textual.pilot import Pilot

from llmd_tui.screen import ORDER, DaemonScreen, found_screens, load_screens
from llmd_tui.widgets.choice import Choice, Option
from llmd_tui.widgets.key_footer import KeyFooter
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
    footer = pilot.app.screen.query_one(KeyFooter)
    keys = footer.keys
    line = lines(pilot.app)[footer.region.y][footer.region.x : footer.region.right]
    for key in keys:
        assert line[key.left : key.left + key.width].strip() == f"{key.name} {key.description}"
    assert all(one.left + one.width <= two.left for one, two in pairwise(keys))
    return [key.description for key in keys]


async def at_width(pilot: Pilot[None], width: int) -> list[str]:
    """Return the keys that are shown at a width."""
    await pilot.resize_terminal(width, 24)
    footer = pilot.app.screen.query_one(KeyFooter)
    await until(pilot, lambda: footer.size.width == width and footer.keys)
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


class Pressed(DaemonScreen):
    NAME = "pressed"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "take('a')", "Allowed", tooltip="What it does"),
        Binding("b", "take('b')", "Refused"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[str] = []

    def action_take(self, letter: str) -> None:
        self.taken.append(letter)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return None if parameters == ("b",) else super().check_action(action, parameters)


async def test_a_click_does_what_the_key_does_unless_it_is_disabled(make_tui: MakeTui) -> None:
    async with make_tui(Pressed).run_test(size=(80, 24)) as pilot:
        await at_width(pilot, 80)
        footer, screen = pilot.app.screen.query_one(KeyFooter), pilot.app.screen
        assert isinstance(screen, Pressed)
        for one in footer.keys[:2]:
            assert await pilot.click(footer, offset=(one.left + one.width - 2, 0))
        await settled(pilot)
        assert [(one.description, one.enabled) for one in footer.keys[:2]] == [
            ("Allowed", True),
            ("Refused", False),
        ]
        assert screen.taken == ["a"]


async def test_the_key_below_the_mouse_has_another_colour_and_its_tooltip(make_tui: MakeTui) -> None:
    async with make_tui(Pressed).run_test(size=(80, 24)) as pilot:
        await at_width(pilot, 80)
        footer = pilot.app.screen.query_one(KeyFooter)
        before = footer.render().spans
        await pilot.hover(footer, offset=(1, 0))
        assert str(footer.tooltip) == "What it does"
        assert footer.render().spans != before
        await pilot.hover("StatusLine")
        assert footer.tooltip is None
        assert footer.render().spans == before
