"""``llmd help``: the help of a command, same as ``llmd COMMAND --help``."""

from __future__ import annotations

import click

from llmd.cli.completion.names import command_names
from llmd.cli.examples import examples


@click.command(epilog=examples("llmd help serve", "llmd help plugins install"))
@click.argument("words", nargs=-1, metavar="[COMMAND]…", shell_complete=command_names)
@click.option("--man", is_flag=True, help="Print the manual page of all commands, for man(1).")
@click.pass_context
def command(ctx: click.Context, /, *, words: tuple[str, ...], man: bool) -> None:
    """Show the help of COMMAND, or of llmd itself."""
    shown = ctx.find_root()
    if man:
        from llmd.cli.man_page import man_page

        assert isinstance(shown.command, click.Group)
        click.echo(man_page(shown.command), nl=False)
        return
    for word in words:
        group = shown.command
        if not isinstance(group, click.Group):
            raise click.UsageError(f"`{shown.command_path}` has no subcommands", ctx)
        _name, found, _rest = group.resolve_command(shown, [word])
        assert found is not None  # else a usage error was raised
        shown = click.Context(found, info_name=word, parent=shown)
    click.echo(shown.get_help())
