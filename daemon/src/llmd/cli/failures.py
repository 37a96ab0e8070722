"""Errors on standard error, for people and for programs."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable

import click

from llmd.api.errors import LlmdError, NotPermittedError

EXIT_CHECK_FAILED = 8
"""Exit code of commands whose checks found something wrong."""


def show_failure(error: LlmdError, *, as_json: bool) -> None:
    """Print what went wrong and what to do next."""
    if as_json:
        show_json(type(error).__name__, error.message, error.hint)
        return
    click.echo(f"llmd: {failure_text(error)}", err=True)


def failure_text(error: LlmdError) -> str:
    """Return what went wrong, and below it what to do next."""
    return f"{error.message}\n      {error.hint}" if error.hint else error.message


def refused_by_system(error: OSError) -> LlmdError:
    """Return an error of the operating system (a read-only folder, a full disk) as an `LlmdError`."""
    place = f"{error.filename}: " if error.filename else ""
    kind = NotPermittedError if isinstance(error, PermissionError) else LlmdError
    return kind(
        f"{place}{error.strerror or error}",
        hint="`llmd config paths` shows where llmd keeps its files; `llmd -v` shows where it failed",
    )


def show_usage(error: click.UsageError, *, as_json: bool) -> None:
    """Print what is wrong with the command line."""
    if isinstance(error, click.NoSuchOption):
        error = _unknown_option(error)
    program = error.ctx.command_path if error.ctx else "llmd"
    message = _as_ours(error.format_message())
    hint = f"see `{program} --help`"
    if as_json:
        show_json("UsageError", message, hint)
        return
    usage = f"{error.ctx.get_usage().replace('Usage:', 'usage:')}; " if error.ctx else ""
    click.echo(f"llmd: {message}\n      {usage}{hint}", err=True)


def _as_ours(message: str) -> str:
    """Return a message of click in the form of llmd's own: it begins in lower case and has no full stop."""
    return f"{message[:1].lower()}{message[1:].removesuffix('.')}"


def _unknown_option(error: click.NoSuchOption) -> click.UsageError:
    """Return the error with llmd's equivalent of another tool's flag, or with similar flags."""
    from llmd.cli.this_machine import answer_to_host
    from llmd.config.other_tools import answer_to_flag

    name = error.option_name
    answer = (
        (answer_to_host(error.ctx.command_path) if error.ctx and name == "--host" else "")
        or answer_to_flag(name)
        or _other_command(name)
        or _nearest(name, error.possibilities or ())
    )
    return click.UsageError(f"there is no option {name}" + (f"; {answer}" if answer else ""), error.ctx)


def _other_command(flag: str) -> str:
    """Point to ``llmd serve`` if it has the flag: flags typed to other commands are often meant for the
    daemon.
    """
    from llmd.cli.serve import command

    taken = any(flag in parameter.opts for parameter in command.params)
    return f"`llmd serve` takes {flag}" if taken else ""


def _nearest(flag: str, flags: Iterable[str]) -> str:
    """Suggest similar flags. Dashes are not compared: all flags have them."""
    known = {name.lstrip("-"): name for name in flags}
    near = [known[word] for word in difflib.get_close_matches(flag.lstrip("-"), known)]
    return f"did you mean {' or '.join(near)}?" if near else ""


def show_json(kind: str, message: str, hint: str) -> None:
    """Print an error as one JSON object, of the same shape for every error."""
    click.echo(json.dumps({"error": {"type": kind, "message": message, "hint": hint}}), err=True)
