"""``llmd embed``: computes embeddings of texts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import click

from llmd.cli.completion.names import model_names
from llmd.cli.connection import connect, named
from llmd.cli.examples import examples
from llmd.cli.model_flag import ModelCommand
from llmd.cli.output import show_json
from llmd.cli.setting_option import OptionWithDefault
from llmd.cli.settings import JSON, client_options
from llmd.cli.typed_text import keep_bytes, valid


@click.command(
    cls=ModelCommand,
    epilog=examples(
        'llmd embed Qwen/Qwen3-Embedding-0.6B "one text" "another"',
        "llmd embed Qwen/Qwen3-Embedding-0.6B --json < lines.txt",
    ),
)
@click.argument("model", shell_complete=model_names)
@click.argument("texts", nargs=-1)
@click.option(
    "--dimensions",
    cls=OptionWithDefault,
    type=int,
    metavar="N",
    default_text="all",
    help="Keep the first N numbers of each vector and normalise it again.",
)
@click.option("--no-start", is_flag=True, help="Do not start a daemon; exit with code 6 if none is running.")
@JSON
@client_options
def command(
    *,
    model: str,
    texts: tuple[str, ...],
    dimensions: int | None,
    no_start: bool,
    as_json: bool,
    host: str | None,
    timeout_s: float | None,
    config_file: Path | None,
) -> None:
    """Print the embedding of each text, one per line.

    MODEL is an embedding model: a name that `llmd list` shows, a directory, or a GGUF file. Without TEXTS,
    each line of standard input is a text. If no daemon is running, one is started and left running.
    """
    asked = [valid(text) for text in texts] or lines_of(sys.stdin)
    fields = {} if dimensions is None else {"dimensions": dimensions}
    client = connect(host, timeout_s, config_file, start=not no_start)
    vectors = client.embed(asked, model=named(model), **fields)
    if as_json:
        show_json({"model": model, "embeddings": vectors})
    else:
        click.echo("\n".join(shown(vector) for vector in vectors))


def lines_of(stdin: IO[str] | None) -> list[str]:
    """Return the non-empty lines of standard input.

    Raises:
        click.UsageError: there are none.
    """
    if stdin is None or stdin.isatty():
        raise click.UsageError("there is no text: give some as TEXTS, or one on each line of standard input")
    keep_bytes(stdin)
    lines = [valid(line) for line in stdin.read().splitlines() if line.strip()]
    if not lines:
        raise click.UsageError("standard input has no text")
    return lines


def shown(vector: Sequence[float]) -> str:
    """Format a vector as a line; 9 digits round-trip a float32."""
    return " ".join(f"{number:.9g}" for number in vector)
