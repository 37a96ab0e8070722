"""Resolves name clashes: the plugin discovered first keeps the name, the other is disabled entirely."""

from __future__ import annotations

from collections.abc import Iterable

from llmd.host.names import PluginName
from llmd.host.states import Failure, Summary


def settle(summaries: Iterable[tuple[PluginName, Summary]]) -> dict[PluginName, Summary]:
    """Return the summaries, with a failure for each plugin that claims a name already taken.

    A disabled plugin claims no names, so a third plugin may still use its other names.
    """
    owners: dict[tuple[str, str], PluginName] = {}
    settled: dict[PluginName, Summary] = {}
    for plugin, summary in summaries:
        claims = (
            []
            if summary.failure
            else [(kind, name) for kind, names in summary.provides.items() for name in names]
        )
        taken = next((claim for claim in claims if claim in owners), None)
        if taken:
            settled[plugin] = Summary(summary.provides, failure=_conflict(plugin, taken, owners[taken]))
        else:
            settled[plugin] = summary
            owners |= dict.fromkeys(claims, plugin)
    return settled


def _conflict(plugin: PluginName, claim: tuple[str, str], owner: PluginName) -> Failure:
    kind, name = claim
    return Failure(
        phase="description",
        reason=f"{plugin.distribution} {plugin.version} claims the {kind} {name!r}, "
        f"which {owner.distribution} {owner.version} already provides",
        fix=f"run `llmd plugins uninstall {plugin.distribution}`"
        + ("" if owner.built_in else f", or uninstall {owner.distribution} to use this one"),
    )
