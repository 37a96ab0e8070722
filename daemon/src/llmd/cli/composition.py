"""Builds what commands use. Nothing here is kept: each process builds its own and passes it on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llmd.config import Directories
    from llmd.host.benchmarks import Benchmarks
    from llmd.host.cache import Cache
    from llmd.host.names import PluginName
    from llmd.host.plugin_host import PluginHost
    from llmd.registry.store import Store


def cache_folder() -> Path:
    """Where results are kept that can be taken again."""
    from llmd.config.directories import Directories

    return Directories.of(os.environ).cache


def build_cache() -> Cache:
    from llmd.host.cache import Cache

    return Cache(cache_folder())


def build_names() -> tuple[PluginName, ...]:
    from llmd.host.names import discover

    return discover()


def build_host(cache: Cache | None = None) -> PluginHost:
    """The plugins of this environment. What is built with the same ``cache`` warns once where it cannot be written."""
    from llmd.host.names import DEVICE_TRIAL
    from llmd.host.plugin_host import PluginHost

    return PluginHost(build_names(), cache or build_cache(), trial=DEVICE_TRIAL)


def plugin_subcommands() -> dict[str, str]:
    """Verbs of plugins with their help, as stored; plugins are imported only where one was never seen."""
    from llmd.host.listing import known_commands

    names, cache = build_names(), build_cache()
    known = known_commands(names, cache)
    if known is not None:
        return known
    from llmd.host.catalog import described_commands

    return described_commands(names, cache)


def build_benchmarks(cache: Cache | None = None) -> Benchmarks:
    from llmd.host.benchmarks import Benchmarks

    return Benchmarks(cache or build_cache())


def build_store(directories: Directories) -> Store:
    """The built-in models, and what lies in the data directory."""
    from llmd.builtin.guide import guide_directory
    from llmd.registry.store import Store

    return Store(directories.models, {"guide": guide_directory()})
