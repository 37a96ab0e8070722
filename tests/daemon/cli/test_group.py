"""Subcommands are found by name, by alias and among plugins; for a typo the nearest is suggested."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click
import pytest

from llmd.cli.group import LazyGroup, TopGroup, nearest
from llmd.cli.subcommands import Subcommand
from tests.plugin_sites import Site

Llmd = Callable[..., Any]

COMMAND = """
from llmd.api import Command, hookimpl
LLMD_API = 2

@hookimpl
def llmd_commands():
    return [Command("{subcommand}", "Say hello.", load)]

def load():
    import click

    @click.command()
    def greet():
        click.echo("hello from a plugin")

    return greet
"""


@pytest.fixture
def context() -> click.Context:
    group = TopGroup("llmd", subcommands={"ps": Subcommand("llmd.cli.devices", "Show engines.")})
    return click.Context(group, info_name="llmd")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("pluginz", "plugins"), ("docter", "doctor"), ("devcies", "devices"), ("xyzzy", None)],
)
def test_suggests_the_nearest_verb(typed: str, meant: str | None) -> None:
    assert nearest(typed, ["plugins", "doctor", "devices"]) == meant


def test_suggests_the_verb_behind_an_alias() -> None:
    assert nearest("statsu", ["ps"]) == "ps"
    assert nearest("statsu", ["devices"]) is None


def test_a_wrong_verb_ends_with_two_and_a_suggestion(llmd: Llmd) -> None:
    done = llmd("docter")
    assert (done.code, done.out) == (2, "")
    assert "there is no command 'docter'; did you mean `llmd doctor`?" in done.err


def test_a_wrong_verb_of_a_group_gets_the_whole_suggestion(llmd: Llmd) -> None:
    assert "did you mean `llmd plugins list`?" in llmd("plugins", "lst").err


def test_aliases_lead_to_their_verb(context: click.Context) -> None:
    group = context.command
    assert isinstance(group, TopGroup)
    assert group.get_command(context, "status") is group.get_command(context, "ps")


def test_listing_a_group_imports_no_command(context: click.Context) -> None:
    group = LazyGroup("group", subcommands={"missing": Subcommand("llmd.no_such_module", "Does nothing.")})
    assert group.list_commands(context) == ["missing"]
    assert "Does nothing." in group.get_help(click.Context(group))
    with pytest.raises(ModuleNotFoundError):
        group.get_command(context, "missing")


def test_a_verb_of_a_plugin_is_listed_and_runs(llmd: Llmd, site: Site) -> None:
    site.write("greeter", COMMAND.format(subcommand="greet"))
    assert "greet" in llmd("--help").out
    assert llmd("greet").out == "hello from a plugin\n"


def test_a_known_verb_imports_no_plugin(llmd: Llmd, site: Site) -> None:
    plugin = site.write("greeter", COMMAND.format(subcommand="greet"))
    assert llmd("plugins", "--help").code == 0
    assert plugin.module not in sys.modules


def test_no_plugin_can_replace_a_verb(llmd: Llmd, site: Site) -> None:
    site.write("greeter", COMMAND.format(subcommand="doctor"))
    assert "hello" not in llmd("doctor", "--help").out


def test_a_shell_gets_commands_with_their_help_and_no_module_is_imported() -> None:
    group = LazyGroup("g", subcommands={"one": Subcommand("no.such.module", "The one.")})
    (item,) = group.shell_complete(click.Context(group), "o")
    assert (item.value, item.help) == ("one", "The one.")
    assert group.shell_complete(click.Context(group), "x") == []
