"""The command line: help, version, exit codes, and errors on standard error."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import click
import pytest

from llmd.api.errors import MemoryBudgetError
from llmd.cli.main import llmd as command
from llmd.cli.subcommands import SUBCOMMANDS

Llmd = Callable[..., Any]


def test_help_names_every_verb_with_its_purpose(llmd: Llmd) -> None:
    done = llmd("--help")
    assert done.code == 0
    for name, subcommand in SUBCOMMANDS.items():
        assert name in done.out
        assert subcommand.help in " ".join(done.out.split())
    assert llmd("-h").out == done.out


def test_version_is_one_line(llmd: Llmd) -> None:
    assert llmd("--version").out == f"llmd {version('llmd-daemon')}\n"


@pytest.mark.parametrize(
    ("flags", "level"),
    [
        ([], logging.ERROR),
        (["-v"], logging.INFO),
        (["-vv"], logging.DEBUG),
        (["--verbose", "--verbose"], logging.DEBUG),
    ],
)
def test_each_verbose_flag_says_more(llmd: Llmd, flags: list[str], level: int) -> None:
    assert llmd(*flags, "config", "paths").code == 0
    assert logging.getLogger().level == level


@pytest.mark.parametrize("arguments", [["--version"], ["plugins", "list"]])
def test_light_commands_import_nothing_heavy(arguments: list[str]) -> None:
    code = f"""
import sys
from llmd.cli.main import run
assert run({arguments!r}) == 0
heavy = {{"numpy", "aiohttp", "rich", "tokenizers", "pluggy", "llmd.cli.doctor"}} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_an_error_says_what_happened_and_what_to_do(llmd: Llmd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "invoke", raising(MemoryBudgetError("no room", hint="use a smaller model")))
    done = llmd("devices")
    assert (done.code, done.out) == (5, "")
    assert done.err == "llmd: no room\n      use a smaller model\n"


def test_an_error_is_json_where_json_was_asked_for(llmd: Llmd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "invoke", raising(MemoryBudgetError("no room", hint="use a smaller model")))
    done = llmd("devices", "--json")
    assert done.code == 5
    assert json.loads(done.err) == {
        "error": {"type": "MemoryBudgetError", "message": "no room", "hint": "use a smaller model"}
    }


def test_what_the_system_refuses_is_an_error_and_no_traceback(
    llmd: Llmd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "invoke", raising(OSError(30, "Read-only file system", "/state")))
    done = llmd("devices")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("llmd: /state: Read-only file system\n")
    assert json.loads(llmd("devices", "--json").err)["error"]["message"] == "/state: Read-only file system"
    monkeypatch.setattr(command, "invoke", raising(PermissionError(13, "Permission denied", "/state")))
    done = llmd("devices")
    assert (done.code, done.err.splitlines()[0]) == (4, "llmd: /state: Permission denied")


def test_a_usage_error_ends_with_two(llmd: Llmd) -> None:
    done = llmd("devices", "--no-such-option")
    assert (done.code, done.out) == (2, "")
    assert "--no-such-option" in done.err
    assert json.loads(llmd("devices", "--json", "--no-such-option").err)["error"]["type"] == "UsageError"


def test_json_after_the_end_of_options_is_no_option(llmd: Llmd) -> None:
    done = llmd("no-such-subcommand", "--", "--json")
    assert done.err.startswith("llmd: there is no command 'no-such-subcommand'")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_an_interrupt_ends_with_130(
    llmd: Llmd, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    monkeypatch.setattr(command, "invoke", raising(error))
    assert llmd("devices").code == 130


def test_a_reader_that_left_ends_the_command_quietly() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "llmd.cli.main", "--help"],
            stdout=closed,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, b"")


def raising(error: BaseException) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail
