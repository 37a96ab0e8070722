"""``llmd pull``: downloads a model from a hub, in the daemon if one is running, else in this process."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from llmd.api.errors import DaemonUnreachableError
from llmd.cli.completion.names import model_names
from llmd.cli.composition import build_store
from llmd.cli.connection import connect
from llmd.cli.examples import examples
from llmd.cli.model_flag import ModelCommand
from llmd.cli.output import show_step
from llmd.cli.pull_progress import shown
from llmd.cli.settings import HUB, client_options, read_settings
from llmd.registry.short_names import short_name

if TYPE_CHECKING:
    from llmd.config import Settings

Step = dict[str, Any]


@click.command(
    cls=ModelCommand,
    epilog=examples(
        "llmd pull Qwen/Qwen3-0.6B",
        "llmd pull qwen3:0.6b",
        "llmd pull org/model@v1.0",
        "llmd pull org/model-GGUF:Q8_0",
        "llmd pull org/model --json",
    ),
)
@click.argument("model", shell_complete=model_names)
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@click.option("--json", "as_json", is_flag=True, help="Print each step as a line of JSON.")
@HUB
@client_options
def command(
    *,
    model: str,
    quiet: bool,
    as_json: bool,
    hub: str | None,
    host: str | None,
    timeout_s: float | None,
    config_file: Path | None,
) -> None:
    """Download MODEL from a hub: ORG/NAME, or ORG/NAME@REVISION for a branch, a tag or a commit.

    A short name such as qwen3 or qwen3:0.6b stands for a repository; `llmd search` lists all of them.

    Only the files that llmd needs are downloaded: configuration, tokenizer, template and safetensors weights.
    With ORG/NAME:QUANT, or if the repository has no safetensors, llmd downloads the GGUF file of that
    quantisation (Q4_K_M by default) instead. Each file is verified by its hash. An interrupted pull resumes
    where it stopped. If a daemon is running, it does the download, unless --hub is given.
    """
    if not quiet and not as_json and (entry := short_name(model)) is not None:
        click.echo(f"{model} stands for {entry.repo}", err=True)
    settings = read_settings(config_file, hub=hub, host=host, timeout_s=timeout_s)
    must_answer = settings.config.client.host is not None
    steps = None if hub else by_daemon(model, host, timeout_s, config_file, must_answer=must_answer)
    with contextlib.closing(steps or by_this_process(model, settings)) as running:
        name = print_steps(running) if as_json else shown(running, sys.stderr, quiet=quiet)
    if not as_json:
        click.echo(name)


def by_daemon(
    model: str, host: str | None, timeout_s: float | None, config_file: Path | None, *, must_answer: bool
) -> Generator[Step, None, None] | None:
    """Return the steps of a pull in the daemon, or None if none is running.

    Raises:
        DaemonUnreachableError: no daemon is running, and ``must_answer`` is set because the user named one.
    """
    try:
        client = connect(host, timeout_s, config_file)
    except DaemonUnreachableError:
        if must_answer:
            raise
        return None
    return client.pull(model)


def by_this_process(model: str, settings: Settings) -> Generator[Step, None, None]:
    """Pull in this process and yield the steps."""
    from llmd.registry.hub import Hub
    from llmd.registry.names import parse_hub_name
    from llmd.registry.pacing import paced
    from llmd.registry.pull import pull

    name = parse_hub_name(model)
    library = build_store(settings.directories).pulled_models
    for step in paced(pull(name, Hub(settings.config.registry.hub), library)):
        yield msgspec.to_builtins(step)


def print_steps(steps: Iterable[Step]) -> str:
    """Print each step as a line of JSON; return the name of the model."""
    name = ""
    for step in steps:
        name = step.get("model", "")
        show_step(step)
    return name
