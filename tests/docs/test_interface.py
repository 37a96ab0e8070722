"""The pages of the interface name every command, flag, setting, call, route and exit code, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from llmd import Client, Engine
from llmd.api.errors import LlmdError
from llmd.cli.main import llmd
from llmd.config.setting_values import setting_fields
from llmd.engine.composition import make_host
from tests.docs.page import CODE, DOCS, INTERFACE, rows_with

PAGE = "\n".join(page.read_text() for page in INTERFACE)
BUILT_IN_DIALECTS = ("anthropic", "llamacpp", "native", "ollama", "openai", "rerank")
"""Each has a page in ``docs/api/``."""


def commands(
    command: click.Command = llmd, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    """Yield every built-in command with what is typed after ``llmd``, and ``llmd`` itself."""
    if isinstance(command, click.Group):
        if not path:
            yield "llmd", command
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, (*path, name))
    else:
        yield " ".join(path), command


def codes(column: str, other: str, page: str = PAGE) -> set[str]:
    """Return what is code in a column of the tables that also have the other column."""
    return {code for row in rows_with(page, column) if other in row for code in CODE.findall(row[column])}


def members(kind: type) -> set[str]:
    """Return the public names that a class itself defines."""
    return {f"{kind.__name__}.{name}" for name in vars(kind) if not name.startswith("_")}


def kinds(error: type[LlmdError] = LlmdError) -> Iterator[type[LlmdError]]:
    """Yield every class of error that has been imported."""
    yield error
    for kind in error.__subclasses__():
        yield from kinds(kind)


def test_every_command_has_its_line() -> None:
    assert codes("command", "what it does") == {name for name, _ in commands()} - {"llmd"}


def test_every_flag_of_every_command_has_its_line() -> None:
    documented = {
        (command, flag)
        for row in rows_with(PAGE, "flag")
        for command in CODE.findall(row["command"])
        for flag in CODE.findall(row["flag"])
    }
    real = {
        (name, flag)
        for name, command in commands()
        for option in command.params
        if isinstance(option, click.Option)
        for flag in option.opts
    }
    assert documented == real


def test_every_python_call_has_its_line() -> None:
    assert codes("call", "shown by") == members(Engine) | members(Client)


@pytest.mark.parametrize("name", BUILT_IN_DIALECTS)
def test_every_route_has_its_line(name: str, tmp_path: Path) -> None:
    real = {f"{route.method} {route.path}" for route in make_host(tmp_path).dialects()[name].routes()}
    assert codes("route", "shown by", (DOCS / "api" / f"{name}.md").read_text()) == real


def test_every_page_of_an_api_is_that_of_a_dialect() -> None:
    assert {page.stem for page in (DOCS / "api").iterdir()} == set(BUILT_IN_DIALECTS)


@pytest.mark.parametrize("key", setting_fields())
def test_every_setting_is_a_flag_or_is_named(key: str) -> None:
    name = key.partition(".")[2]
    words = set(CODE.findall(PAGE))
    assert {name, f"--{name.replace('_', '-')}", f"--{name.removesuffix('_s')}"} & words


def test_every_exit_code_of_an_error_has_its_line() -> None:
    documented = {int(row["exit code"]) for row in rows_with(PAGE, "exit code")}
    assert {kind.exit_code for kind in kinds()} <= documented
