"""``llmd plugins new``: creates the project of a new plugin."""

from __future__ import annotations

from pathlib import Path

import click

from llmd.cli.composition import build_host
from llmd.cli.examples import examples
from llmd.cli.output import show_json
from llmd.cli.plugins.project import KINDS, check_name, create_project, distribution_name
from llmd.cli.settings import JSON


@click.command(
    epilog=examples("llmd plugins new backend mine", "llmd plugins new command hello --path ~/src/hello")
)
@click.argument("kind", type=click.Choice(KINDS), metavar="KIND")
@click.argument("name")
@click.option(
    "--path",
    "folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write the project there; by default into ./llmd-KIND-NAME.",
)
@JSON
def command(*, kind: str, name: str, folder: Path | None, as_json: bool) -> None:
    """Create the project of a new plugin: a complete plugin that works, which you change into yours.

    KIND is backend, architecture, transport, dialect (an HTTP API), tool-parser, reasoning-parser or command.
    NAME is what users type: lower-case letters, digits and hyphens. Names of llmd and of installed plugins
    are refused. The project has a README.md with the next steps, a pyproject.toml, sources and a test.
    """
    from llmd.cli.plugins.taken_names import check_free  # imports plugins, which a shell must not wait for

    check_name(name)
    check_free(kind, name, build_host().plugins())
    target = (folder or Path(distribution_name(kind, name))).expanduser()
    files = create_project(kind, name, target)
    if as_json:
        show_json({"kind": kind, "name": name, "path": target.resolve(), "files": files})
        return
    click.echo(f"created {target} with {len(files)} files; try it with:")
    shown = target if target.is_absolute() else f"./{target}"
    click.echo(f"  llmd plugins install {shown}")
    click.echo(f"  llmd check {name}")
