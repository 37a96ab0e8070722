"""The help shows defaults that come from the configuration or the model."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from llmd.cli.group import LazyGroup
from llmd.cli.main import llmd
from llmd.cli.setting_option import OptionWithDefault, SettingOption, setting_option
from llmd.config.setting_text import default_text


def commands(group: LazyGroup, path: str) -> Iterator[tuple[str, click.Command]]:
    for name, subcommand in group.subcommands.items():
        command = subcommand.load()
        if isinstance(command, LazyGroup):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


assert isinstance(llmd, LazyGroup)
COMMANDS = dict(commands(llmd, "llmd"))


def one_line(command: click.Command, name: str) -> str:
    """Return the help of a command without its line breaks."""
    context = click.Context(command, info_name=name, **command.context_settings)
    return " ".join(command.get_help(context).split())


@pytest.mark.parametrize("name", ["llmd", *COMMANDS])
def test_help_shows_every_default(name: str) -> None:
    command = COMMANDS.get(name, llmd)
    context = click.Context(command, info_name=name, **command.context_settings)
    for option in command.params:
        if not isinstance(option, click.Option) or option.is_flag or option.count or option.hidden:
            continue
        record = option.get_help_record(context)
        assert record is not None
        if isinstance(option, SettingOption):
            expected = default_text(option.setting)
        elif isinstance(option, OptionWithDefault):
            expected = option.default_text
        else:
            default = option.to_info_dict()["default"]
            expected = "" if default is None else str(default)
        assert ("default: " in record[1]) == bool(expected), record


def test_serve_states_what_its_settings_are_by_default() -> None:
    text = one_line(COMMANDS["llmd serve"], "serve")
    for default in ("8", "1.0 GiB", "5m", "30 s", "auto", "half of the free memory after loading"):
        assert f"[default: {default}]" in text


def test_a_setting_takes_the_names_of_other_tools_and_help_shows_its_own() -> None:
    @click.command()
    @setting_option("--slots", setting="slots", type=int, metavar="N", help="How many.")
    def command(slots: int | None) -> None:
        click.echo(slots)

    assert command.make_context("made", ["--parallel", "3"]).params == {"slots": 3}
    assert command.make_context("made", []).params == {"slots": None}
    text = one_line(command, "made")
    assert "--slots N How many. [default: 8]" in text
    assert "--parallel" not in text
