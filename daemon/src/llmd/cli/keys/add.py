"""``llmd keys add``: a new key, made here and shown once, or chosen by the user."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from llmd.api.errors import ConfigError
from llmd.cli.examples import examples
from llmd.cli.keys.reload import tell_daemon
from llmd.cli.output import show_json
from llmd.cli.settings import CONFIG, JSON, read_settings
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
@click.option("--manage", is_flag=True, help="Let it load, pull, remove and stop, too.")
@click.option(
    "--key-file",
    metavar="FILE",
    help=f"Take the key in this file, - for standard input, instead of making one: {MIN_LEN} characters or more, "
    f"{MIN_DIFFERENT} of them different.",
)
@JSON
@CONFIG
def command(
    *, name: str, manage: bool, key_file: str | None, as_json: bool, config_file: Path | None
) -> None:
    """Make an API key and print it, or take one of your own.

    Only its digest is kept: what is printed now cannot be shown again. A daemon that runs takes it at once.
    """
    chosen = None if key_file is None else read_key(key_file)
    settings = read_settings(config_file)
    key = KeyFile(settings.directories.keys).add(name, manages=manage, secret=chosen)
    made = {} if chosen is not None else {"key": key}
    if as_json:
        show_json({"name": name, **made})
    elif made:
        click.echo(key)
    tell_daemon(settings)


def read_key(file: str) -> str:
    """Read the key in a file, which has nothing else; ``-`` is standard input.

    Raises:
        ConfigError: it cannot be read, or has no key or several lines.
    """
    place = "standard input" if file == STDIN else file
    limit = MAX_LEN + len("\r\n") + 1  # so that a longer one is seen to be too long
    try:
        if file == STDIN:
            content = sys.stdin.buffer.read(limit)
        else:
            with Path(file).open("rb") as opened:
                content = opened.read(limit)
    except OSError as error:
        raise ConfigError(
            f"{place} cannot be read: {error.strerror}", hint="name a file that holds the key alone"
        ) from error
    lines = content.decode(errors="surrogateescape").splitlines()
    if len(lines) != 1:
        held = "no key" if not lines else "several lines"
        raise ConfigError(f"{place} holds {held}", hint="write one key into it, and nothing else")
    return lines[0]
