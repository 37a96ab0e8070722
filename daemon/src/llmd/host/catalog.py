"""Plugin descriptions: cached summaries if they are current, the plugin itself if its objects are needed."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.host.cache import Cache
from llmd.host.description import Description, describe, summarize
from llmd.host.fingerprint import plugin_fingerprint
from llmd.host.listing import commands_of, known_summary
from llmd.host.names import PluginName
from llmd.host.states import DESCRIPTION, Summary


class Catalog:
    """The descriptions of plugins. A plugin is imported only for its objects, or if no summary is stored."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._descriptions: dict[PluginName, Description] = {}

    def known(self, plugin: PluginName) -> Summary | None:
        """Return the stored summary (which may be a failure), or None."""
        return known_summary(plugin, self._cache)

    def summary(self, plugin: PluginName) -> Summary:
        """Return the stored summary, or a new one if none is stored or the last attempt failed."""
        known = self.known(plugin)
        return known if known and not known.failure else self.fresh(plugin)

    def fresh(self, plugin: PluginName) -> Summary:
        """Describe the plugin now and store the summary."""
        summary = summarize(plugin)
        self._cache.put(DESCRIPTION, plugin.key, plugin_fingerprint(plugin), summary)
        return summary

    def description(self, plugin: PluginName) -> Description:
        """Return the plugin's objects.

        Raises:
            PluginError: the plugin cannot be described.
        """
        if plugin not in self._descriptions:
            self._descriptions[plugin] = describe(plugin)
        return self._descriptions[plugin]


def described_commands(plugins: Sequence[PluginName], cache: Cache) -> dict[str, str]:
    """Return plugin subcommands with their help; a plugin is imported only if no summary is stored."""
    catalog = Catalog(cache)
    return commands_of({plugin: catalog.known(plugin) or catalog.summary(plugin) for plugin in plugins})
