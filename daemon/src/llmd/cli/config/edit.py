"""``llmd config edit``: opens a configuration file in the user's editor."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import click

from llmd.cli.config.change import chosen_file, file_options
from llmd.cli.failures import failure_text

NEW_FILE = """\
# Settings of llmd. `llmd config show --long` lists them all with their meaning.

# [engine]
# max_ctx = 8192

# [models."org/name"]
# keep_alive = "1h"
"""


@click.command("edit")
@file_options
def command(*, system: bool, config_file: Path | None) -> None:
    """Open your config.toml in $VISUAL or $EDITOR, and check it before it is replaced.

    If it has errors, you may edit it again. Otherwise the old file stays, and the new text is kept next to
    it.
    """
    from llmd.config.config_change import change_file, read_text

    file = chosen_file(config_file, system=system)
    old, _mode = read_text(file)
    draft = file.with_name(f"{file.stem}.draft{file.suffix}")
    start = old or NEW_FILE
    new = edited(start, draft, file)
    if new == start:
        click.echo("nothing was changed")
    else:
        change_file(file, lambda _text: new, private=not system)
        click.echo(f"{file} is changed; a daemon reads its settings when it starts")
    draft.unlink(missing_ok=True)


def edited(text: str, draft: Path, file: Path) -> str:
    """Return what the user makes of a text, edited until it has no errors.

    Raises:
        ConfigError: it has errors, and the user does not edit it again. It is kept in ``draft``.
    """
    from llmd.config.config_change import errors_of_text, joined
    from llmd.config.private_file import replace_private_file

    replace_private_file(draft, text.encode())
    while True:
        click.edit(filename=str(draft))
        new = draft.read_bytes().decode(errors="replace")
        errors = errors_of_text(draft, new)
        if not errors:
            return new
        for error in errors:
            click.echo(failure_text(error), err=True)
        if not wants_again():
            refused = joined(errors)
            refused.hint = f"{file} stays as it was; your text is in {draft}"
            raise refused


def wants_again() -> bool:
    """Ask whether to edit again; nobody is asked without a terminal, or at its end."""
    with contextlib.suppress(click.Abort):
        return sys.stdin.isatty() and click.confirm("Edit again?", default=True, err=True)
    return False
