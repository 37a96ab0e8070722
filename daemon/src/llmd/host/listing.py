"""Plugin states from metadata and the cache, for ``llmd plugins list``. No plugin is imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llmd.host.cache import Cache
from llmd.host.claims import settle
from llmd.host.fingerprint import machine_fingerprint, plugin_fingerprint, probe_fingerprint
from llmd.host.names import PluginName
from llmd.host.states import DESCRIPTION, PROBE, PluginState, Summary, Verdict, state_of


def known_states(plugins: Sequence[PluginName], cache: Cache, trial: str) -> tuple[PluginState, ...]:
    """Return the state of each plugin; ``unknown`` if nothing is cached for its current fingerprint."""
    summaries = {plugin: known_summary(plugin, cache) for plugin in plugins}
    settled = settle((plugin, summary) for plugin, summary in summaries.items() if summary)
    machine = machine_fingerprint()
    return tuple(
        state_of(
            plugin,
            settled.get(plugin),
            cache.get(PROBE, plugin.key, probe_fingerprint(plugin, machine, trial), Verdict),
        )
        for plugin in plugins
    )


def known_summary(plugin: PluginName, cache: Cache) -> Summary | None:
    """Return the cached summary of the plugin, or None."""
    return cache.get(DESCRIPTION, plugin.key, plugin_fingerprint(plugin), Summary)


def known_commands(plugins: Sequence[PluginName], cache: Cache) -> dict[str, str] | None:
    """Return plugin subcommands with their help, or None if a plugin has no current summary."""
    summaries = {plugin: known_summary(plugin, cache) for plugin in plugins}
    known = {plugin: summary for plugin, summary in summaries.items() if summary}
    return commands_of(known) if len(known) == len(summaries) else None


def commands_of(summaries: Mapping[PluginName, Summary]) -> dict[str, str]:
    """Return the subcommands of all plugins that are not disabled."""
    settled = settle(summaries.items()).values()
    return {
        subcommand: text
        for summary in settled
        if not summary.failure
        for subcommand, text in summary.commands.items()
    }
