"""``llmd help``: the help of a command, same as ``llmd COMMAND --help``."""

from __future__ import annotations

import click

from llmd.cli.examples import examples


@click.command(epilog=examples("llmd help serve", "llmd help plugins install"))
@click.argument("words", nargs=-1, metavar="[COMMAND]…")
@click.pass_context
def command(ctx: click.Context, /, *, words: tuple[str, ...]) -> None:
    """Show the help of COMMAND, or of llmd itself."""
    shown = ctx.find_root()
    for word in words:
        group = shown.command
        if not isinstance(group, click.Group):
            raise click.UsageError(f"`{shown.command_path}` has no subcommands", ctx)
        _name, found, _rest = group.resolve_command(shown, [word])
        assert found is not None  # else a usage error was raised
        shown = click.Context(found, info_name=word, parent=shown)
    click.echo(shown.get_help())
