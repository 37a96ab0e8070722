"""``llmd config unset``: removes a setting from a configuration file."""

from __future__ import annotations

from pathlib import Path

import click

from llmd.api.errors import ConfigError, NotFoundError
from llmd.cli.completion.names import setting_names
from llmd.cli.config.change import MODEL, chosen_file, file_options, setting_key, told_of_stronger, toml_path
from llmd.cli.examples import examples


@click.command("unset", epilog=examples("llmd config unset max_ctx", "llmd config unset slots --model guide"))
@click.argument("name", shell_complete=setting_names)
@MODEL
@file_options
def command(*, name: str, model: str | None, system: bool, config_file: Path | None) -> None:
    """Remove NAME from your config.toml, so that its default applies.

    NAME may also be a name that llmd does not know, as it is in the file: engine.slot.
    """
    from llmd.config.config_change import change_file
    from llmd.config.setting_values import setting_name
    from llmd.config.toml_edit import without

    key = written_key(name, model)
    file = chosen_file(config_file, system=system)

    def change(text: str) -> str:
        changed = without(text, toml_path(key, model))
        if changed == text:
            raise NotFoundError(
                f"{file} does not set {setting_name(key, model)}", hint="`llmd config show` has the origins"
            )
        return changed

    change_file(file, change, private=not system)
    click.echo(f"{setting_name(key, model)} is no longer set in {file}")
    told_of_stronger(key, model, file, config_file)


def written_key(name: str, model: str | None) -> str:
    """Return the key of a setting; of an unknown one as it was typed, to remove it from a table.

    Raises:
        ConfigError: the name is unknown and has no table.
    """
    try:
        return setting_key(name)
    except ConfigError:
        if model is None and "." not in name:
            raise
        return f"models.{name}" if model is not None else name
