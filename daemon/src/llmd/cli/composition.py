"""Builds the objects that commands use. There are no globals: each process builds and passes its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llmd.config import Directories
    from llmd.host.benchmarks import Benchmarks
    from llmd.host.cache import Cache
    from llmd.host.choices import ChoicesFile
    from llmd.host.installation.environment import Environment
    from llmd.host.installation.installer import Installer
    from llmd.host.names import PluginName
    from llmd.host.plugin_host import PluginHost
    from llmd.registry.store import Store


BUILT_IN_MODELS = ("guide",)


def cache_folder() -> Path:
    """Return the folder for results that can be recomputed."""
    from llmd.config.directories import Directories

    return Directories.of(os.environ).cache


def build_cache() -> Cache:
    from llmd.host.cache import Cache

    return Cache(cache_folder())


def build_choices() -> ChoicesFile:
    from llmd.config.directories import Directories
    from llmd.host.choices import ChoicesFile

    return ChoicesFile(Directories.of(os.environ).plugin_choices)


def build_installer(environment: Environment) -> Installer:
    from llmd.host.installation.installer import Installer
    from llmd.host.installation.pip import Pip

    return Installer(environment, Pip())


def build_names() -> tuple[PluginName, ...]:
    from llmd.host.names import discover

    return discover()


def build_host(cache: Cache | None = None) -> PluginHost:
    """Return the plugins of this environment. Users of the same ``cache`` warn once if it is not writable."""
    from llmd.host.names import DEVICE_TRIAL
    from llmd.host.plugin_host import PluginHost

    disabled = build_choices().load().disabled
    return PluginHost(build_names(), cache or build_cache(), trial=DEVICE_TRIAL, disabled=disabled)


def plugin_subcommands() -> dict[str, str]:
    """Return the plugins' subcommands with their help, from the cache; import plugins only if one is not in
    it.
    """
    from llmd.host.listing import known_commands

    disabled = build_choices().load().disabled
    names = [name for name in build_names() if name.name not in disabled]
    cache = build_cache()
    known = known_commands(names, cache)
    if known is not None:
        return known
    from llmd.host.catalog import described_commands

    return described_commands(names, cache)


def cached_subcommands() -> dict[str, str]:
    """Return the plugins' subcommands with their help that are in the cache, for shells that cannot wait."""
    from llmd.host.states import DESCRIPTION

    found: dict[str, str] = {}
    for summary in build_cache().values(DESCRIPTION):
        found |= summary.get("commands", {})
    return found


def build_benchmarks(cache: Cache | None = None) -> Benchmarks:
    from llmd.host.benchmarks import Benchmarks

    return Benchmarks(cache or build_cache())


def build_store(directories: Directories) -> Store:
    """Return the store of the built-in models and of those in the data directory."""
    from llmd.builtin.guide import guide_directory
    from llmd.registry.store import Store

    return Store(directories.models, dict.fromkeys(BUILT_IN_MODELS, guide_directory()))
