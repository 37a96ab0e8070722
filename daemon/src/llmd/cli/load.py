"""``llmd load``: loads a model before its first request."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import click

from llmd.cli.completion.names import model_names
from llmd.cli.connection import connect, named
from llmd.cli.examples import examples
from llmd.cli.model_flag import ModelCommand
from llmd.cli.output import show_step
from llmd.cli.settings import client_options
from llmd.cli.terminal import has_changing_lines, replace_line

Step = dict[str, Any]


@click.command(
    cls=ModelCommand,
    epilog=examples("llmd load guide", "llmd load guide --keep-alive -1", "llmd load guide --json"),
)
@click.argument("model", shell_complete=model_names)
@click.option(
    "--keep-alive",
    metavar="DURATION",
    help="Unload the model after this time without requests, such as 10m; -1: never.",
)
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@click.option("--json", "as_json", is_flag=True, help="Print each step as a line of JSON.")
@click.option("--no-start", is_flag=True, help="Do not start a daemon; exit with code 6 if none is running.")
@client_options
def command(
    *,
    model: str,
    keep_alive: str | None,
    quiet: bool,
    as_json: bool,
    no_start: bool,
    host: str | None,
    timeout_s: float | None,
    config_file: Path | None,
) -> None:
    """Load MODEL into the daemon, so that its first answer comes sooner.

    MODEL is `guide`, a name that `llmd list` shows, a directory, or a GGUF file. If no daemon is running, one
    is started and left running.
    """
    client = connect(host, timeout_s, config_file, start=not no_start)
    steps = client.load(named(model), keep_alive=seconds_or_text(keep_alive))
    if as_json:
        for step in steps:
            show_step(step)
        return
    click.echo(result_line(shown(steps, sys.stderr, quiet=quiet)))


def seconds_or_text(keep_alive: str | None) -> str | float | None:
    """Return a number of seconds as a number, which the daemon expects; other texts are durations."""
    try:
        return None if keep_alive is None else float(keep_alive)
    except ValueError:
        return keep_alive


def shown(steps: Iterable[Step], stream: IO[str], *, quiet: bool = False) -> Step:
    """Show each step on a line that changes, or on a line of its own when it begins; return the last."""
    changes, step, begun = has_changing_lines(stream), Step(), ""
    for step in steps:
        if quiet or "model" in step:
            continue
        if changes:
            replace_line(stream, step_line(step))
        elif step["step"] != begun:
            begun = step["step"]
            stream.write(f"{begun}\n")
            stream.flush()
    if changes and not quiet:
        replace_line(stream, "")
    return step


def step_line(step: Step) -> str:
    """Format a step with its progress."""
    percent = f" {100 * step['done'] // step['total']} %" if step["total"] else ""
    return f"loading{percent}: {step['step']}"


def result_line(step: Step) -> str:
    """Format the last step."""
    return f"{step['model']} is loaded on {' and '.join(step['devices'])}"
