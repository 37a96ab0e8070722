"""Command groups that import a command only when it is used."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from llmd.cli.subcommands import ALIASES, Subcommand

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class LazyGroup(click.Group):
    """A group whose commands are in a table."""

    def __init__(self, *arguments: Any, subcommands: Mapping[str, Subcommand], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.subcommands = subcommands

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.subcommands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        subcommand = self.subcommands.get(cmd_name)
        return subcommand.load() if subcommand else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        command = self.get_command(ctx, args[0])
        if command:
            return args[0], command, args[1:]
        if not args[0].startswith("-"):
            meant = nearest(args[0], self.list_commands(ctx))
            suggestion = f"; did you mean `{ctx.command_path} {meant}`?" if meant else ""
            raise click.UsageError(f"there is no command {args[0]!r}{suggestion}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands and options. Unlike click's, this imports no command."""
        from click.shell_completion import CompletionItem

        found = self.completed_commands().items()
        commands = [CompletionItem(name, help=text) for name, text in found if name.startswith(incomplete)]
        return commands + click.Command.shell_complete(self, ctx, incomplete)

    def completed_commands(self) -> Mapping[str, str]:
        """Return the commands to suggest in a shell, with their help."""
        return {name: subcommand.help for name, subcommand in self.subcommands.items()}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, subcommand.help) for name, subcommand in self.subcommands.items()])


class TopGroup(LazyGroup):
    """``llmd`` itself, with aliases and the subcommands that plugins add."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.subcommands, *self._added()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = ALIASES.get(cmd_name, cmd_name)
        if name in self.subcommands or name not in self._added():
            return super().get_command(ctx, name)
        from llmd.cli.composition import build_host

        return build_host().command(name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_commands(ctx, formatter)
        if added := self._added():
            with formatter.section("Commands from plugins"):
                formatter.write_dl(sorted(added.items()))

    def completed_commands(self) -> Mapping[str, str]:
        from llmd.cli.composition import cached_subcommands

        return {**cached_subcommands(), **super().completed_commands()}

    def _added(self) -> dict[str, str]:
        """Return the subcommands that plugins add, with their help."""
        from llmd.cli.composition import plugin_subcommands

        return {
            subcommand: text
            for subcommand, text in plugin_subcommands().items()
            if subcommand not in self.subcommands
        }


def nearest(name: str, subcommands: list[str]) -> str | None:
    """Return the subcommand closest to a mistyped name; aliases count as their subcommands."""
    candidates = {
        **{subcommand: subcommand for subcommand in subcommands},
        **{alias: subcommand for alias, subcommand in ALIASES.items() if subcommand in subcommands},
    }
    close = difflib.get_close_matches(name, candidates, n=1)
    return candidates[close[0]] if close else None
