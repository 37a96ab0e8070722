"""Errors as people and programs read them, on standard error."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable

import click

from llmd.api.errors import LlmdError


def show_failure(error: LlmdError, *, as_json: bool) -> None:
    """Say what happened and what to do next."""
    if as_json:
        show_json(type(error).__name__, error.message, error.hint)
        return
    click.echo(f"llmd: {error.message}", err=True)
    if error.hint:
        click.echo(f"      {error.hint}", err=True)


def refused_by_system(error: OSError) -> LlmdError:
    """What the operating system refused: a folder that cannot be written, a full disk."""
    place = f"{error.filename}: " if error.filename else ""
    return LlmdError(
        f"{place}{error.strerror or error}",
        hint="`llmd config paths` shows where llmd keeps its files; `llmd -v` says where it failed",
    )


def show_usage(error: click.UsageError, *, as_json: bool) -> None:
    """Say what is wrong with the command line."""
    if isinstance(error, click.NoSuchOption):
        error = _unknown_option(error)
    if as_json:
        show_json("UsageError", error.format_message(), "see `llmd --help`")
    else:
        error.show()


def _unknown_option(error: click.NoSuchOption) -> click.UsageError:
    """The same error with what llmd has instead of another tool's flag, or with names that are near."""
    from llmd.config.other_tools import answer_to_flag

    name = error.option_name
    answer = answer_to_flag(name) or _other_command(name) or _nearest(name, error.possibilities or ())
    return click.UsageError(f"there is no option {name}" + (f"; {answer}" if answer else ""), error.ctx)


def _other_command(flag: str) -> str:
    """What is typed to `llmd run` is often meant for the daemon that it asks."""
    from llmd.cli.serve import command

    taken = any(flag in parameter.opts for parameter in command.params)
    return f"`llmd serve` takes {flag}" if taken else ""


def _nearest(flag: str, flags: Iterable[str]) -> str:
    """Compare without dashes, which all flags have alike."""
    known = {name.lstrip("-"): name for name in flags}
    near = [known[word] for word in difflib.get_close_matches(flag.lstrip("-"), known)]
    return f"did you mean {' or '.join(near)}?" if near else ""


def show_json(kind: str, message: str, hint: str) -> None:
    """One object, of the same shape for every error."""
    click.echo(json.dumps({"error": {"type": kind, "message": message, "hint": hint}}), err=True)
