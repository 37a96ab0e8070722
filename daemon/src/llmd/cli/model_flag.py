"""``-m MODEL`` and ``--model MODEL``, as in other tools, for commands whose first argument is a model."""

from __future__ import annotations

from typing import Any

import click

from llmd.cli.completion.names import model_names
from llmd.config.other_tools import answer_to_flag

NAMES = ("-m", "--model")


class ModelCommand(click.Command):
    """A command that takes its model as an argument or, like llama-server, with ``-m`` or ``--model``."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.params.append(
            click.Option([*NAMES, "model_flag"], hidden=True, expose_value=False, shell_complete=model_names)
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self._with_model_first(ctx, args))

    def _with_model_first(self, ctx: click.Context, words: list[str]) -> list[str]:
        """Move the value of ``-m`` to the front, where it becomes the first argument.

        Raises:
            click.NoSuchOption: a flag of another tool, which click might read as a short option with a value:
                ``-ngl`` as ``-n gl``.
        """
        options = [parameter for parameter in self.get_params(ctx) if isinstance(parameter, click.Option)]
        own = {name for option in options for name in option.opts}
        takes_value = {
            name for option in options if not (option.is_flag or option.count) for name in option.opts
        }
        models, others = [], []
        remaining = iter(words)
        for word in remaining:
            if word == "--":
                others += [word, *remaining]
                break
            name, given, value = word.partition("=")
            if name in NAMES and (given or (value := next(remaining, ""))):
                models.append(value)
                continue
            if name not in own and answer_to_flag(name):
                raise click.NoSuchOption(name, ctx=ctx)
            others.append(word)
            if word in takes_value:
                others += [value for value in [next(remaining, None)] if value is not None]
        return [*models, *others]
