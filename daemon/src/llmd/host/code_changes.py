"""Finds plugins whose code changed on disk while this process runs, and says from when on the new code runs.

Python imports a module once per process. The daemon imports parsers and HTTP APIs itself, so it needs a
restart for their new code. Devices and architectures run in engines, and each new engine imports them again.
A command is imported by the process that runs it.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from typing import Literal

import msgspec

from llmd.host.fingerprint import files_fingerprint
from llmd.host.names import PluginName

Applies = Literal["now", "next_load", "restart"]
IN_DAEMON = {"parser", "dialect"}
IN_ENGINES = {"backend", "architecture", "transport"}


class ChangedPlugin(msgspec.Struct, frozen=True):
    """A plugin whose code changed, and from when on the new code is used."""

    plugin: str
    applies: Applies
    reason: str = ""
    """Why the new code cannot be used; empty if it can."""
    fix: str = ""


class CodeOnDisk(msgspec.Struct, frozen=True):
    """The code of one plugin as it was at some time."""

    plugin: PluginName
    files: str

    @classmethod
    def of(cls, plugin: PluginName) -> CodeOnDisk:
        # The files of llmd itself need no look: a change of them without a new version is one of a developer.
        return cls(plugin, "" if plugin.built_in else files_fingerprint(plugin.module))


def code_of(plugins: Iterable[PluginName]) -> dict[str, CodeOnDisk]:
    """Return the code of each plugin by its key."""
    return {plugin.key: CodeOnDisk.of(plugin) for plugin in plugins}


def changed_plugins(
    before: Mapping[str, CodeOnDisk], after: Mapping[str, CodeOnDisk]
) -> list[tuple[PluginName, PluginName]]:
    """Return the plugins whose version or files differ, as they were and as they are."""
    return [
        (before[key].plugin, code.plugin)
        for key, code in after.items()
        if key in before and before[key] != code
    ]


def is_imported(*plugins: PluginName) -> bool:
    """Whether this process has imported the module of one of these plugins."""
    return any(plugin.module in sys.modules for plugin in plugins)


def when_used(kinds: Collection[str], *, imported: bool) -> Applies:
    """Return from when on a daemon uses new code of a plugin that provides these kinds."""
    if imported and IN_DAEMON & set(kinds):
        return "restart"
    return "next_load" if IN_ENGINES & set(kinds) and not IN_DAEMON & set(kinds) else "now"
