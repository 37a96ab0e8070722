"""The second phase, *description*: imports the module, checks the contract version, calls the hooks."""

from __future__ import annotations

import importlib
import logging
import shlex
import sys
from types import ModuleType
from typing import Any

import msgspec
import pluggy

from llmd.api import hooks
from llmd.api.errors import PluginError
from llmd.api.plugins import API_VERSION, Architecture, Backend, Command, Dialect, Parser, Transport
from llmd.host.installation.own import how_to_restore, own_distribution
from llmd.host.kinds import KINDS, Kind
from llmd.host.names import CORE_DISTRIBUTION, PluginName
from llmd.host.source import source_of
from llmd.host.states import Failure, Summary

log = logging.getLogger(__name__)


class Description(msgspec.Struct, frozen=True):
    """The objects that one plugin provides, by kind."""

    backend: tuple[Backend, ...]
    architecture: tuple[Architecture, ...]
    transport: tuple[Transport, ...]
    dialect: tuple[Dialect, ...]
    parser: tuple[Parser, ...]
    command: tuple[Command, ...]

    def summary(self) -> Summary:
        """Return the part that can be stored."""
        provides = {kind.name: kind.names(getattr(self, kind.name)) for kind in KINDS}
        return Summary(
            provides={kind: names for kind, names in provides.items() if names},
            commands={command.name: command.help for command in self.command},
        )


def describe(plugin: PluginName) -> Description:
    """Import a plugin and call its hooks.

    Raises:
        PluginError: the plugin cannot be imported, is built for another contract, or a hook breaks the
        contract.
    """
    module = _import(plugin)
    _check_contract(plugin, module)
    manager = _manager(plugin, module)
    return Description(**{kind.name: _ask(plugin, manager, kind) for kind in KINDS})


def summarize(plugin: PluginName) -> Summary:
    """Return the summary of `describe`, with any failure as a value."""
    try:
        return describe(plugin).summary()
    except PluginError as error:
        return Summary(failure=Failure.of("description", error))


def _import(plugin: PluginName) -> ModuleType:
    known = set(sys.modules)
    try:
        return importlib.import_module(plugin.module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # plugin code may raise anything, even SystemExit
        _forget_modules(plugin, known)
        log.warning("plugin_import_failed", exc_info=True, extra={"plugin": plugin.name})
        raise PluginError(
            f"importing {plugin.module} raised {_shown(error)}", hint=replacement(plugin)
        ) from error


def _forget_modules(plugin: PluginName, known: set[str]) -> None:
    """Drop the modules that a failed import left, all but ``known``: a repaired plugin is imported whole."""
    package = plugin.module.rpartition(".")[0] or plugin.module
    for name in set(sys.modules) - known:
        if f"{name}.".startswith(f"{package}.") and not plugin.built_in:
            del sys.modules[name]


def _check_contract(plugin: PluginName, module: ModuleType) -> None:
    stated = getattr(module, "LLMD_API", None)
    if stated == API_VERSION and type(stated) is int:
        return
    if not isinstance(stated, int):
        raise PluginError(
            f"{plugin.module} does not state the contract that it is built for (LLMD_API is {stated!r})",
            hint=f"ask its author for a {plugin.distribution} that sets LLMD_API = {API_VERSION}",
        )
    name = plugin.distribution
    raise PluginError(
        f"{name} {plugin.version} is built for plugin contract {stated}, but this llmd has {API_VERSION}",
        hint=f"upgrade {CORE_DISTRIBUTION}, or run `llmd plugins install {name}==VERSION` with an older version"
        if stated > API_VERSION
        else f"run `llmd plugins install --upgrade {name}`, or run `llmd plugins uninstall {name}`",
    )


def _manager(plugin: PluginName, module: ModuleType) -> pluggy.PluginManager:
    """Return a manager with only this plugin, so that its hooks are registered all or not at all."""
    manager = pluggy.PluginManager(hooks.PROJECT)
    manager.add_hookspecs(hooks)
    try:
        manager.register(module, name=plugin.name)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        raise PluginError(
            f"a hook does not match its specification: {error}", hint=_documentation()
        ) from error
    if not manager.get_hookcallers(module):
        raise PluginError(f"{plugin.module} implements no hook of llmd.api.hooks", hint=_documentation())
    return manager


def _ask(plugin: PluginName, manager: pluggy.PluginManager, kind: Kind) -> tuple[Any, ...]:
    try:
        answers = getattr(manager.hook, kind.hook)()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # plugin code may raise anything
        log.warning("plugin_hook_failed", exc_info=True, extra={"plugin": plugin.name, "hook": kind.hook})
        raise PluginError(f"its hook {kind.hook} raised {_shown(error)}", hint=replacement(plugin)) from error
    return tuple(one for answer in answers for one in kind.checked(answer))


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def replacement(plugin: PluginName) -> str:
    """Return the hint for a plugin whose code fails."""
    name = plugin.distribution
    if plugin.built_in:
        return f"reinstall {name} with the program that installed it, or run `llmd plugins disable {plugin.name}`"
    return f"{_repair(name)}, or run `llmd plugins uninstall {name}`"


def _repair(distribution: str) -> str:
    """Return how a distribution gets other code: from its folder or wheel, the clone of llmd, or an index."""
    if own := own_distribution(distribution):
        return how_to_restore(own)
    source = source_of(distribution)
    if source is None:
        return f"run `llmd plugins install --upgrade {distribution}`"
    if source.editable:
        return f"repair its sources in {source.place}"
    return f"repair it and run `llmd plugins install {shlex.quote(source.place)}`"


def _documentation() -> str:
    return "see docs/adding-a-backend.md for the hooks and what they return"
