"""docs/adding-a-backend.md quotes what is really there."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from llmd.api import hooks
from llmd.cli.main import llmd
from llmd.host.kinds import KINDS, Kind
from llmd.host.time_limits import PROBE_LIMIT

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adding-a-backend.md").read_text()
QUOTES = re.findall(r"^```\w+\n# (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = sorted(
    set(
        re.findall(
            r"llmd ((?:[a-z]+ )*[a-z]+)", "\n".join(re.findall(r"^\$ .*$|`llmd [^`]*`", PAGE, re.MULTILINE))
        )
    )
)


def test_quotes_several_files_of_the_example() -> None:
    assert len({path for path, _ in QUOTES}) >= 3


@pytest.mark.parametrize(("path", "text"), QUOTES)
def test_each_quotation_stands_in_its_file(path: str, text: str) -> None:
    assert text.strip() in (ROOT / path).read_text()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_each_hook_is_named_with_what_it_returns(kind: Kind) -> None:
    hook, returned = kind.hook, kind.type.__name__
    assert hasattr(hooks, hook)
    assert re.search(rf"`{hook}`\s(returns\s)?`{returned}`s", PAGE)


def test_the_time_limit_of_a_probe_is_the_real_one() -> None:
    assert (
        f"{PROBE_LIMIT.processor_s:g} s of processor time, or {PROBE_LIMIT.wall_s:g} s of the clock" in PAGE
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_exists(command: str) -> None:
    found: click.Command | None = llmd
    for word in command.split():
        if isinstance(found, click.Group):  # what follows a command are its arguments
            found = found.get_command(click.Context(found), word)
    assert isinstance(found, click.Command)
    assert not isinstance(found, click.Group)
