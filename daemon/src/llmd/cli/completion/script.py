"""``llmd completion``: the script that makes a shell complete ``llmd``."""

from __future__ import annotations

import click

from llmd.cli.examples import examples

PROGRAM = "llmd"
VARIABLE = "_LLMD_COMPLETE"
"""Set by the script when it asks for completions; click reads it."""


@click.command(
    "completion",
    epilog=examples(
        "llmd completion bash > ~/.local/share/bash-completion/completions/llmd",
        "llmd completion zsh > ~/.zfunc/_llmd",
        "llmd completion fish > ~/.config/fish/completions/llmd.fish",
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, /, *, shell: str) -> None:
    """Print the completion script for SHELL.

    It completes commands, options, models, devices, plugins and settings. To try it out in bash:
    `source <(llmd completion bash)`. In zsh, the folder ~/.zfunc must be in $fpath before compinit runs.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    completion = kind(ctx.find_root().command, {}, PROGRAM, VARIABLE)
    click.echo(kind.source_template % completion.source_vars())
