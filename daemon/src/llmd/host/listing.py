"""What ``llmd plugins list`` shows: names from metadata, states from the cache. No plugin is imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llmd.host.cache import Cache
from llmd.host.claims import settle
from llmd.host.fingerprint import machine_fingerprint, plugin_fingerprint, probe_fingerprint
from llmd.host.names import PluginName
from llmd.host.states import DESCRIPTION, PROBE, PluginState, Summary, Verdict, state_of


def known_states(plugins: Sequence[PluginName], cache: Cache, trial: str) -> tuple[PluginState, ...]:
    """A row for each plugin; its state is ``unknown`` where the cache has nothing for the plugin as it is now."""
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
    """What the plugin's description said the last time that it was asked."""
    return cache.get(DESCRIPTION, plugin.key, plugin_fingerprint(plugin), Summary)


def known_commands(plugins: Sequence[PluginName], cache: Cache) -> dict[str, str] | None:
    """Verbs that plugins add, with their help, or None where a plugin was never described as it is now."""
    summaries = {plugin: known_summary(plugin, cache) for plugin in plugins}
    known = {plugin: summary for plugin, summary in summaries.items() if summary}
    return commands_of(known) if len(known) == len(summaries) else None


def commands_of(summaries: Mapping[PluginName, Summary]) -> dict[str, str]:
    """The subcommands of plugins that are not set aside."""
    settled = settle(summaries.items()).values()
    return {
        subcommand: text
        for summary in settled
        if not summary.failure
        for subcommand, text in summary.commands.items()
    }
