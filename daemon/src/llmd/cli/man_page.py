"""Writes the manual page ``llmd(1)`` from the help of the commands and the schema of the settings."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

import click

from llmd.cli.examples import KEEP_LINES

NAME = "run language models on the devices of this machine"
DATE = "2026-11-25"
"""The day on which the form of this page was last changed; its content follows the program."""
WIDTH = 78
EXIT_CODES = {
    0: "done",
    1: "failed",
    2: "usage error, or a setting with a wrong value",
    3: "not found",
    4: "refused by the daemon",
    5: "not enough memory or disk space",
    6: "daemon not reachable",
    7: "timeout",
    8: "a check failed",
    9: "conflict: in use, or the name is taken",
    130: "ended by Ctrl-C",
}
FILES = {
    "~/.config/llmd/config.toml": "Your settings. `llmd config paths` shows every file and folder.",
    "/etc/llmd/config.toml": "The system's settings, for what your file leaves out.",
    "~/.local/share/llmd/models": "Models.",
    "~/.local/state/llmd/daemon.log": "The log of a daemon in the background.",
    "~/.cache/llmd": "What can be made again: probe results, packed weights, prompts.",
}
_CODE = re.compile(r"`([^`]+)`")
_SPECIAL = str.maketrans({"\\": r"\e", "-": r"\-", "'": r"\(aq", "^": r"\(ha", "~": r"\(ti", "`": r"\(ga"})


def man_page(root: click.Group) -> str:
    """Return the page in the macros of man(7)."""
    from importlib.metadata import version

    return "\n".join([f'.TH LLMD 1 {DATE} "llmd {version("llmd-daemon")}"', *_sections(root), ""])


def _sections(root: click.Group) -> Iterator[str]:
    # click keeps the names of the help option that a command had in its first context.
    context = click.Context(root, info_name="llmd", **root.context_settings)
    yield from (".SH NAME", rf"llmd \- {NAME}", ".SH SYNOPSIS")
    yield from (r"\fBllmd\fR [\fIOPTIONS\fR] \fICOMMAND\fR [\fIARGUMENTS\fR]...", ".SH DESCRIPTION")
    yield from _lines(root.help or "")
    yield ".SH OPTIONS"
    yield from _options(root, context)
    yield ".SH COMMANDS"
    for command, within in _leaves(root, context):
        yield from _command(command, within)
    yield ".SH ENVIRONMENT"
    yield from _variables()
    yield ".SH FILES"
    for path, text in FILES.items():
        yield from _item(rf"\fI{_escaped(path)}\fR", text)
    yield ".SH EXIT STATUS"
    for code, text in EXIT_CODES.items():
        yield from _item(rf"\fB{code}\fR", text)


def _leaves(group: click.Group, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    """Yield each command of llmd itself that has no subcommands; those of plugins have their own pages."""
    from llmd.cli.group import LazyGroup

    assert isinstance(group, LazyGroup)
    for name, subcommand in group.subcommands.items():
        command = subcommand.load()
        within = click.Context(command, info_name=name, parent=context)
        if isinstance(command, click.Group):
            yield from _leaves(command, within)
        else:
            yield command, within


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f'.SS "{_escaped(context.command_path)}"'
    pieces = " ".join(command.collect_usage_pieces(context)).replace("…", "...")
    yield rf"\fB{_escaped(context.command_path)}\fR {_escaped(pieces)}"
    yield from _paragraphs(command.help or "")
    yield from _options(command, context)
    if command.epilog:
        lines = command.epilog.removeprefix(KEEP_LINES).strip("\n").splitlines()
        yield from (
            ".PP",
            *_lines(lines[0]),
            ".PP",
            ".nf",
            *(_guarded(_escaped(line)) for line in lines[1:]),
            ".fi",
        )


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option):
            names, text = record
            yield from _item(rf"\fB{_escaped(names)}\fR", text)


def _variables() -> Iterator[str]:
    from llmd.config.setting_docs import setting_docs
    from llmd.config.setting_text import default_text
    from llmd.config.setting_values import PREFIX, keys_by_name

    yield from _lines(
        "Each setting has a variable. `config.toml` has the same names in lower case, in tables."
    )
    for name, key in keys_by_name().items():
        default = f" Default: {words}." if (words := default_text(name)) else ""
        text = f"{setting_docs()[name]} Table [{key.partition('.')[0]}].{default}"
        yield from _item(rf"\fB{PREFIX}{name.upper()}\fR", text)
    yield from _item(r"\fBLLMD_CONFIG\fR", "A file to read instead of your config.toml.")


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.replace(KEEP_LINES, "").strip().split("\n\n"):
        yield from (".PP", *_lines(paragraph))


def _item(title: str, text: str) -> Iterator[str]:
    yield from (".TP", title, *_lines(text))


def _lines(text: str) -> Iterator[str]:
    """Return running text; what is between backticks is bold."""
    pieces = _CODE.split(" ".join(text.split()))
    shown = (rf"\fB{_escaped(one)}\fR" if index % 2 else _escaped(one) for index, one in enumerate(pieces))
    yield from map(
        _guarded, textwrap.wrap("".join(shown), WIDTH, break_long_words=False, break_on_hyphens=False)
    )


def _escaped(text: str) -> str:
    return text.replace("…", "...").translate(_SPECIAL)


def _guarded(line: str) -> str:
    """Keep a line of text from being read as a request."""
    return rf"\&{line}" if line.startswith(".") else line
