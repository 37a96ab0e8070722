"""``llmd keys add``: a new key, generated and shown once, or chosen by the user."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from llmd.api.errors import ConfigError
from llmd.cli.examples import examples
from llmd.cli.output import show_json
from llmd.cli.settings import CONFIG, JSON
from llmd.cli.this_machine import local_settings
from llmd.config.keys import MAX_LEN, MIN_DIFFERENT, MIN_LEN, KeyFile

STDIN = "-"


@click.command(
    "add",
    epilog=examples(
        "llmd keys add laptop",
        "llmd keys add operator --manage",
        "openssl rand -hex 32 | llmd keys add script --key-file -",
    ),
)
@click.argument("name")
@click.option("--manage", is_flag=True, help="Also allow it to load, pull, remove and stop.")
@click.option(
    "--key-file",
    metavar="FILE",
    help=f"Read the key from this file, or from standard input if -, instead of generating one: at least {MIN_LEN} "
    f"characters, {MIN_DIFFERENT} of them different.",
)
@JSON
@CONFIG
def command(
    *, name: str, manage: bool, key_file: str | None, as_json: bool, config_file: Path | None
) -> None:
    """Create an API key and print it, or add a key of your own.

    Only its digest is stored: the key cannot be shown again. A running daemon accepts it at once.
    """
    chosen = None if key_file is None else read_key(key_file)
    settings = local_settings(config_file, "keys")
    key = KeyFile(settings.directories.keys).add(name, manages=manage, secret=chosen)
    made = {} if chosen is not None else {"key": key}
    if as_json:
        show_json({"name": name, **made})
    elif made:
        click.echo(key)


def read_key(file: str) -> str:
    """Read the key from a file that contains nothing else; ``-`` is standard input.

    Raises:
        ConfigError: the file cannot be read, is empty, or has several lines.
    """
    place = "standard input" if file == STDIN else file
    limit = MAX_LEN + len("\r\n") + 1  # one more than allowed, to detect a key that is too long
    try:
        if file == STDIN:
            content = sys.stdin.buffer.read(limit)
        else:
            with Path(file).open("rb") as opened:
                content = opened.read(limit)
    except OSError as error:
        raise ConfigError(
            f"{place} cannot be read: {error.strerror}", hint="name a file that contains only the key"
        ) from error
    lines = content.decode(errors="surrogateescape").splitlines()
    if len(lines) != 1:
        held = "no key" if not lines else "several lines"
        raise ConfigError(f"{place} holds {held}", hint="write one key into it and nothing else")
    return lines[0]
