"""``llmd create``: derives a model from another one with a Modelfile."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from llmd.api.errors import ConfigError, RequestError
from llmd.cli.completion.names import derived_names
from llmd.cli.connection import connect, named
from llmd.cli.examples import examples
from llmd.cli.settings import client_options
from llmd.registry.modelfile import Modelfile, is_go_template, read_modelfile

PARAMETER = "PARAMETER "


@click.command(epilog=examples("llmd create assistant", "llmd create assistant -f assistant.modelfile"))
@click.argument("name", shell_complete=derived_names)
@click.option(
    "-f",
    "--file",
    "file",
    type=click.Path(path_type=Path, allow_dash=True),
    default=Path("Modelfile"),
    show_default=True,
    help="The Modelfile; - is standard input.",
)
@click.option("--no-start", is_flag=True, help="Do not start a daemon; exit with code 6 if none is running.")
@client_options
def command(
    *,
    name: str,
    file: Path,
    no_start: bool,
    host: str | None,
    timeout_s: float | None,
    config_file: Path | None,
) -> None:
    """Derive the model NAME from another one, with its own prompt, template and options.

    A Modelfile has a command a line: FROM (a model's name or path), PARAMETER, SYSTEM, TEMPLATE (in Jinja),
    MESSAGE and LICENSE. The new model shares the weights of the other one and takes no disk space.
    """
    modelfile = read_modelfile(_text(file), str(file))
    modelfile.base = _base(modelfile, file)
    check_parameters(modelfile, str(file))
    if is_go_template(modelfile.template):
        modelfile.template = ""
        click.echo("TEMPLATE is left out: it is a Go template; the model's own template is used", err=True)
    client = connect(host, timeout_s, config_file, start=not no_start)
    for field in client.create(name, modelfile.fields):
        option = field.removeprefix("parameters.")
        click.echo(
            f"PARAMETER {option} has no effect; `llmd serve --help` lists what can be set for a model",
            err=True,
        )
    click.echo(name)


def check_parameters(modelfile: Modelfile, name: str) -> None:
    """Check the values of parameters, as the daemon does, so that an error can name the line.

    Raises:
        ConfigError: a value is invalid.
    """
    from llmd.requests.fields import RequestFields
    from llmd.server.dialects.ollama.options import read_options

    try:
        read_options(RequestFields(modelfile.parameters, PARAMETER), None)
    except RequestError as error:
        parameter = (error.param or "").removeprefix(PARAMETER)
        line = modelfile.lines.get(parameter)
        place = name if line is None else f"{name}:{line}"
        raise ConfigError(f"{place}: {error.message}", hint=error.hint) from error


def _text(file: Path) -> str:
    if str(file) == "-":
        return sys.stdin.read()
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise click.UsageError(f"{file} cannot be read: {reason}") from error


def _base(modelfile: Modelfile, file: Path) -> str:
    """Return the model after FROM for the daemon; a path is relative to the Modelfile."""
    base = Path(modelfile.base).expanduser()
    path = (file.parent / base) if str(file) != "-" else base
    is_path = modelfile.base.startswith((".", "/", "~")) or path.exists()
    return named(str(path.absolute())) if is_path else named(modelfile.base)
