"""``llmd config set``: changes a setting in a configuration file."""

from __future__ import annotations

from pathlib import Path

import click

from llmd.cli.completion.names import setting_names
from llmd.cli.config.change import (
    MODEL,
    check_has_effect,
    chosen_file,
    file_options,
    setting_key,
    told_of_absent,
    told_of_stronger,
    toml_path,
    typed_value,
)
from llmd.cli.examples import examples


@click.command(
    "set",
    epilog=examples(
        "llmd config set max_ctx 8192",
        "llmd config set keep_alive 1h --model guide",
        "llmd config set addr 127.0.0.1:9000 unix:/tmp/llmd.sock",
    ),
    context_settings={"ignore_unknown_options": True},  # a value may begin with a minus sign
)
@click.argument("name", shell_complete=setting_names)
@click.argument("values", nargs=-1, required=True, metavar="VALUE…")
@MODEL
@file_options
def command(
    *, name: str, values: tuple[str, ...], model: str | None, system: bool, config_file: Path | None
) -> None:
    """Set NAME to VALUE in your config.toml.

    The file is checked as a whole before it is replaced. Its comments and its order stay. A daemon reads its
    settings when it starts.
    """
    from llmd.config.config_change import change_file
    from llmd.config.path_settings import absolute
    from llmd.config.setting_values import setting_name
    from llmd.config.toml_edit import toml_value, with_value

    if mistyped := [value for value in values if value.startswith("--")]:
        raise click.UsageError(f"there is no option {mistyped[0]}")
    key = setting_key(name)
    file = chosen_file(config_file, system=system)
    value = absolute(key, typed_value(key, values), Path.cwd())
    if model is not None:
        check_has_effect(key, model)
    change_file(file, lambda text: with_value(text, toml_path(key, model), value), private=not system)
    click.echo(f"{setting_name(key, model)} = {toml_value(value)} in {file}")
    told_of_absent(model)
    told_of_stronger(key, model, file, config_file)
