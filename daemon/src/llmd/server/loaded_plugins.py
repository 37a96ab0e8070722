"""The plugins of a running daemon, and what has happened to them on disk since it imported them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from llmd.host.code_changes import (
    ChangedPlugin,
    CodeOnDisk,
    changed_plugins,
    code_of,
    is_imported,
    when_used,
)
from llmd.host.names import CORE_DISTRIBUTION, PluginName
from llmd.host.plugin_host import PluginHost
from llmd.host.states import Summary


class PluginChanges(Struct, frozen=True):
    """What has changed, and what the daemon knows after it uses the changes."""

    new: tuple[str, ...]
    lost: tuple[str, ...]
    changed: tuple[ChangedPlugin, ...]
    code: Mapping[str, CodeOnDisk]
    removed: Mapping[str, CodeOnDisk]

    def __bool__(self) -> bool:
        return bool(self.new or self.lost or self.changed)


class LoadedPlugins:
    """The code of each plugin that the daemon uses.

    A plugin that needs a restart keeps its old code here, so that each reload says so until then. Removed
    ones are remembered: Python does not import them again either.
    """

    def __init__(self, host: PluginHost) -> None:
        self._code: Mapping[str, CodeOnDisk] = code_of(host.names)
        self._removed: Mapping[str, CodeOnDisk] = {}

    def changes(self, old: PluginHost, new: PluginHost) -> PluginChanges:
        """Compare the plugins that are used with those of a new host, and prepare that for being used."""
        code = code_of(new.names)
        known = {**self._removed, **self._code}
        changed: dict[str, ChangedPlugin] = {}
        kept: dict[str, CodeOnDisk] = {}
        for before, after in changed_plugins(known, code):
            if before.key in self._removed and not is_imported(before, after):
                continue
            change = _change(before, after, _last_summary(old, after), new)
            changed[CORE_DISTRIBUTION if after.built_in else after.key] = change
            if change.applies == "restart":
                kept[after.key] = known[after.key]
        added = (code[key].plugin for key in code.keys() - self._code.keys() - changed.keys())
        lost = {key: self._code[key] for key in self._code.keys() - code.keys()}
        return PluginChanges(
            tuple(sorted(map(str, added))),
            tuple(sorted(str(one.plugin) for one in lost.values())),
            tuple(changed[key] for key in sorted(changed)),
            {**code, **kept},
            {**self._removed, **lost},
        )

    def use(self, changes: PluginChanges) -> None:
        """The daemon uses these changes now."""
        self._code, self._removed = changes.code, changes.removed


def _change(before: PluginName, after: PluginName, last: Summary, host: PluginHost) -> ChangedPlugin:
    """Return when the new code of a plugin is used, and why not if it fails."""
    if after.built_in:
        return ChangedPlugin(f"{after.distribution} {after.version}", "restart")
    imported = is_imported(before, after)
    failure = host.describe_apart(after, last) if imported else host.summary(after).failure
    applies = when_used({*last.provides, *host.summary(after).provides}, imported=imported)
    reason, fix = (failure.reason, failure.fix) if failure else ("", "")
    return ChangedPlugin(str(after), applies, reason, fix)


def _last_summary(host: PluginHost, plugin: PluginName) -> Summary:
    """Return the summary of the code that is used, whatever version that is."""
    return next((host.summary(one) for one in host.names if one.key == plugin.key), Summary())
