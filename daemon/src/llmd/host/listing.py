"""Plugin states from metadata and the cache, for ``llmd plugins list``. No plugin is imported."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from llmd.host.cache import Cache
from llmd.host.claims import settle
from llmd.host.fingerprint import machine_fingerprint, plugin_fingerprint, probe_fingerprint
from llmd.host.names import PluginName, canonical
from llmd.host.states import DESCRIPTION, PROBE, Failure, PluginState, Summary, Verdict, state_of


def known_states(
    plugins: Sequence[PluginName], cache: Cache, trial: str, disabled: Collection[str] = ()
) -> tuple[PluginState, ...]:
    """Return the state of each plugin; ``unknown`` if nothing is cached for its current fingerprint.

    ``disabled`` are the names of plugins that the user disabled.
    """
    summaries = {
        plugin: disabled_summary(plugin) if plugin.name in disabled else known_summary(plugin, cache)
        for plugin in plugins
    }
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


def disabled_summary(plugin: PluginName) -> Summary:
    """Return the summary of a plugin that the user disabled: it provides nothing."""
    return Summary(failure=Failure.disabled(plugin))


def missing_states(installed: Mapping[str, str], plugins: Sequence[PluginName]) -> tuple[PluginState, ...]:
    """Return a row for each distribution that was installed and is not there any more.

    ``installed`` has what the user named by distribution (`llmd.host.choices`).
    """
    present = {canonical(plugin.distribution) for plugin in plugins}
    return tuple(
        PluginState(
            name=name,
            distribution=name,
            version="",
            module="",
            phase="name",
            state="missing",
            reason="it was installed with `llmd plugins install`, and an upgrade of the environment removed it",
            fix=f"run `llmd plugins install {target}`, or forget it with `llmd plugins uninstall {name}`",
        )
        for name, target in installed.items()
        if canonical(name) not in present
    )


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
