"""The manual page names every command, option and setting, and is in the form of man(7)."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from llmd.cli.main import llmd
from llmd.cli.man_page import EXIT_CODES, man_page
from llmd.cli.subcommands import SUBCOMMANDS
from llmd.config.other_tools import OTHER_NAMES
from llmd.config.setting_values import keys_by_name
from tests.docs.page import INTERFACE, rows_with
from tests.docs.test_interface import commands

INSTALLED = Path(__file__).parents[3] / "daemon" / "man" / "llmd.1"
REQUESTS = {".TH", ".SH", ".SS", ".PP", ".TP", ".nf", ".fi"}


@pytest.fixture(scope="module")
def page() -> str:
    return man_page(llmd)


def test_the_installed_page_is_the_current_one(page: str) -> None:
    assert INSTALLED.read_text() == page, "run `llmd help --man > daemon/man/llmd.1`"


def test_writing_the_page_leaves_the_short_help_option_as_it_is() -> None:
    script = "from llmd.cli import main, man_page; man_page.man_page(main.llmd); main.run(['-h'])"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.startswith("Usage: llmd ")


def test_it_has_the_sections_of_a_manual_page(page: str) -> None:
    sections = re.findall(r"^\.SH (.*)$", page, re.MULTILINE)
    assert sections[:3] == ["NAME", "SYNOPSIS", "DESCRIPTION"]
    assert sections[3:] == ["OPTIONS", "COMMANDS", "ENVIRONMENT", "FILES", "EXIT STATUS"]


def test_every_line_is_text_or_a_request(page: str) -> None:
    requests = {line.split()[0] for line in page.splitlines() if line.startswith((".", "'"))}
    assert requests == REQUESTS
    assert all(line for line in page.splitlines())
    assert page.count("\n.nf\n") == page.count("\n.fi\n")
    assert page.isascii()


def test_every_command_option_and_setting_is_in_it(page: str) -> None:
    plain = page.replace(r"\-", "-").replace("\n", " ")
    options: set[str] = set()
    for path, command in commands():
        if path.split()[0] not in {"llmd", *SUBCOMMANDS}:
            continue  # a plugin of this environment
        if not isinstance(command, click.Group):
            assert f'.SS "llmd {path}"' in plain
        options |= {
            flag for option in command.params if isinstance(option, click.Option) for flag in option.opts
        }
    others = {flag for name in OTHER_NAMES for flag in name.flags}  # accepted, but in no help
    assert {flag for flag in options if flag not in plain} <= others
    assert [name for name in keys_by_name() if rf"\fBLLMD_{name.upper()}\fR" not in plain] == []


def test_the_exit_codes_are_those_of_the_reference() -> None:
    text = "\n".join(path.read_text() for path in INTERFACE)
    assert {str(code) for code in EXIT_CODES} == {row["exit code"] for row in rows_with(text, "exit code")}


@pytest.mark.exhaustive
@pytest.mark.parametrize("checker", [["mandoc", "-Tlint"], ["man", "--warnings", "-l"]])
def test_checkers_have_no_warning(checker: list[str]) -> None:
    assert shutil.which(checker[0]), "see tools/system_packages.py"
    done = subprocess.run([*checker, str(INSTALLED)], capture_output=True, text=True, check=False)
    said = done.stdout if checker[0] == "mandoc" else done.stderr
    assert (done.returncode, said) == (0, "")
