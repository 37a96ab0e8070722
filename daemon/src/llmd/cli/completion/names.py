"""Completes names of models, devices, plugins and settings. They come from folders and caches."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def model_names(_ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return the models of the store."""
    from llmd.cli.composition import BUILT_IN_MODELS
    from llmd.config import Directories
    from llmd.registry.model_folders import model_folders

    stored = [name for name, _ in model_folders(Directories.of(os.environ).models)]
    return _beginning(typed, [*BUILT_IN_MODELS, *_derived(), *stored])


def derived_names(_ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return the models that `llmd create` made and may replace."""
    return _beginning(typed, _derived())


def device_names(_ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return the devices that stored probes found, and ``auto``."""
    return _beginning(typed, ["auto", *_found_devices()])


def request_ids(_ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return the requests that run or wait; none if the daemon does not answer at once."""
    from llmd.api.errors import LlmdError
    from llmd.cli.doctor.patience import patient_client
    from llmd.config import load_settings

    try:
        rows = patient_client(settings=load_settings()).requests()
    except LlmdError:
        return []
    return _beginning(typed, [row["request_id"] for row in rows])


def plugin_names(_ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return the installed plugins."""
    from llmd.cli.composition import build_names

    return _beginning(typed, [plugin.name for plugin in build_names()])


def device_and_plugin_names(ctx: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """Return what `llmd check` checks."""
    return _beginning(typed, [*_found_devices(), *plugin_names(ctx, parameter, typed)])


def disabled_names(_ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return the plugins that the user disabled."""
    from llmd.cli.composition import build_choices

    return _beginning(typed, build_choices().load().disabled)


def removable_names(_ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return the plugins that are not part of llmd, with their distributions."""
    from llmd.cli.composition import build_names

    others = [plugin for plugin in build_names() if not plugin.built_in]
    return _beginning(typed, [name for plugin in others for name in (plugin.name, plugin.distribution)])


def installable_names(
    _ctx: click.Context, _parameter: click.Parameter, typed: str
) -> list[str] | list[CompletionItem]:
    """Return what llmd's list of known plugins has; files if none of it begins with what was typed."""
    from click.shell_completion import CompletionItem

    from llmd.host.plugin_index import read_index

    known = _beginning(typed, [entry.install for entry in read_index().plugins])
    return known or [CompletionItem(typed, type="file")]


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


def _derived() -> list[str]:
    from llmd.config import Directories
    from llmd.registry.derived import DerivedModels
    from llmd.registry.names import DERIVED

    return list(DerivedModels(Directories.of(os.environ).models / DERIVED).names())


def _found_devices() -> list[str]:
    from llmd.cli.composition import build_cache
    from llmd.host.states import PROBE

    reports = build_cache().values(PROBE)
    return [info["info"]["name"] for report in reports for info in report.get("devices", ())]


def _beginning(typed: str, names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name.startswith(typed)})
