from __future__ import annotations

import re
from pathlib import Path

import pytest

from llmd_tui.screens.chat.chat_actions import ACTIONS
from llmd_tui.screens.chat.slash_commands import ALIASES, COMMANDS, completed, completions, help_text, parsed


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/help", ("help", "")),
        ("/? ", ("help", "")),
        ("/set top_k 3", ("set", "top_k 3")),
        ("/bye", ("exit", "")),
        ("/nonsense now", ("nonsense", "now")),
        ("/etc/hosts is a file", None),
        ("/help\nme", None),
        ("hello /help", None),
    ],
)
def test_commands_are_told_from_messages(text: str, command: tuple[str, str] | None) -> None:
    assert parsed(text) == command


def test_every_command_does_something_and_is_in_the_help() -> None:
    assert set(ACTIONS) == set(COMMANDS)
    assert set(ALIASES.values()) <= set(COMMANDS)
    assert all(f"/{name} " in f"{help_text()} " for name in COMMANDS)


def test_the_manual_names_every_command() -> None:
    manual = (Path(__file__).parents[4] / "docs" / "tui.md").read_text()
    assert all(re.search(rf"`/{re.escape(name)}[` ]", manual) for name in [*COMMANDS, *ALIASES])


@pytest.mark.parametrize(
    ("text", "offers"),
    [
        ("/s", ["/save", "/schema", "/set", "/system"]),
        ("/set top", ["/set top_p", "/set top_k"]),
        ("/think o", ["/think on", "/think off"]),
        ("/model g", ["/model guide"]),
        ("/load ", ["/load trip"]),
        ("/new ", []),
        ("hello", []),
    ],
)
def test_names_and_arguments_are_completed(text: str, offers: list[str]) -> None:
    assert completions(text, models=["guide", "other"], saved=["trip"]) == offers


def test_paths_are_completed(tmp_path: Path) -> None:
    (tmp_path / "notes.md").touch()
    assert completions(f"/attach {tmp_path}/no") == [f"/attach {tmp_path}/notes.md"]


@pytest.mark.parametrize(
    ("text", "offers", "result"),
    [
        ("/s", ["/save", "/set"], "/s"),
        ("/sa", ["/save"], "/save "),
        ("/set t", ["/set top_p", "/set top_k"], "/set top_"),
        ("/attach f", ["/attach folder/"], "/attach folder/"),
        ("/x", [], "/x"),
    ],
)
def test_tab_adds_what_all_offers_have_in_common(text: str, offers: list[str], result: str) -> None:
    assert completed(text, offers) == result
