"""Completes names of models, devices, plugins and settings. They come from folders and caches."""

from __future__ import annotations

import os
from collections.abc import Iterable

import click


def model_names(_ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return the models of the store."""
    from llmd.cli.composition import BUILT_IN_MODELS
    from llmd.config import Directories
    from llmd.registry.derived import DerivedModels
    from llmd.registry.model_folders import model_folders
    from llmd.registry.names import DERIVED

    models = Directories.of(os.environ).models
    derived = DerivedModels(models / DERIVED).names()
    return _beginning(typed, [*BUILT_IN_MODELS, *derived, *(name for name, _ in model_folders(models))])


def device_names(_ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return the devices that stored probes found, and ``auto``."""
    from llmd.cli.composition import build_cache
    from llmd.host.states import PROBE

    found = [
        info["info"]["name"] for report in build_cache().values(PROBE) for info in report.get("devices", ())
    ]
    return _beginning(typed, ["auto", *found])


def plugin_names(_ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return the installed plugins."""
    from llmd.cli.composition import build_names

    return _beginning(typed, [plugin.name for plugin in build_names()])


def setting_names(_ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return the settings, with their tables if a table was typed."""
    from llmd.config.setting_values import keys_by_name

    keys = keys_by_name()
    return _beginning(typed, keys.values() if "." in typed else keys)


def command_names(ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return the commands, for `llmd help`."""
    from llmd.cli.group import LazyGroup

    command = ctx.find_root().command
    for word in ctx.params.get("words") or ():
        found = command.get_command(ctx, word) if isinstance(command, click.Group) else None
        if found is None:
            return []
        command = found
    return _beginning(typed, command.completed_commands() if isinstance(command, LazyGroup) else ())


def _beginning(typed: str, names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name.startswith(typed)})
