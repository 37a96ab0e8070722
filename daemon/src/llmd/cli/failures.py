"""Errors as people and programs read them, on standard error."""

from __future__ import annotations

import json

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
    if as_json:
        show_json("UsageError", error.format_message(), "see `llmd --help`")
    else:
        error.show()


def show_json(kind: str, message: str, hint: str) -> None:
    """One object, of the same shape for every error."""
    click.echo(json.dumps({"error": {"type": kind, "message": message, "hint": hint}}), err=True)
