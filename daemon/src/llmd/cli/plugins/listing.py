"""``llmd plugins list``: metadata and what is stored. No plugin is imported."""

from __future__ import annotations

from typing import Any

import click

from llmd.cli.composition import build_cache, build_names
from llmd.cli.output import Column, View, listing_options, show
from llmd.host.names import DEVICE_TRIAL
from llmd.host.states import PluginState


def provided(state: PluginState) -> str:
    """What a plugin provides, kind by kind."""
    return "; ".join(f"{kind} {' '.join(names)}" for kind, names in state.provides.items())


def told(state: PluginState) -> str:
    """The state with its reason and its mend."""
    if state.state == "unknown":
        return "unknown: not looked at yet; `llmd doctor` looks"
    return (
        f"failed ({state.grain}): {state.reason} → {state.mend}" if state.state == "failed" else state.state
    )


COLUMNS = (
    Column[PluginState]("NAME", lambda state: state.name),
    Column[PluginState]("DISTRIBUTION", lambda state: state.distribution),
    Column[PluginState]("VERSION", lambda state: state.version),
    Column[PluginState]("PROVIDES", provided),
    Column[PluginState]("STATE", told),
)


@click.command("list")
@listing_options
def command(**view: Any) -> None:
    """List installed plugins: what each provides, its state, and why one is not used.

    Nothing is imported: states are those of the last time that the daemon or `llmd doctor` looked.
    """
    from llmd.host.listing import known_states

    show(View(**view), "plugins", known_states(build_names(), build_cache(), DEVICE_TRIAL), COLUMNS)
