"""A plugin's command is checked when it is loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import pytest

from llmd.api.errors import ConfigError, PluginError
from llmd.api.plugins import Command
from llmd.host.commands import loaded
from llmd.host.names import PluginName

PLUGIN = PluginName("made", "made", "made-made", "1.0")


def command(load: Callable[[], Any]) -> Command:
    return Command("greet", "Say hello.", load)


def test_a_command_is_handed_on() -> None:
    greet = click.Command("greet")
    assert loaded(PLUGIN, command(lambda: greet)) is greet


def test_something_else_is_refused() -> None:
    with pytest.raises(
        PluginError, match=r"`llmd greet` of plugin made .* returned a str, not a click.Command"
    ):
        loaded(PLUGIN, command(lambda: "greet"))


def test_an_exception_is_the_plugins_error() -> None:
    def fail() -> Any:
        raise ImportError("no module named greetings")

    with pytest.raises(PluginError, match="ImportError: no module named greetings") as caught:
        loaded(PLUGIN, command(fail))
    assert "made-made" in caught.value.hint


def test_an_error_of_llmd_stays_itself() -> None:
    def fail() -> Any:
        raise ConfigError("no such setting")

    with pytest.raises(ConfigError):
        loaded(PLUGIN, command(fail))
