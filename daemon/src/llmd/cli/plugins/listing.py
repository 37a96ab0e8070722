"""``llmd plugins list``: installed plugins and their stored states. No plugin is imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from llmd.cli.composition import build_cache, build_names
from llmd.cli.output import Column, View, listing_options, show
from llmd.host.names import DEVICE_TRIAL
from llmd.host.states import PluginState

SHOWN_NAMES = 3


def provided(provides: Mapping[str, Sequence[str]]) -> str:
    """Format what a plugin provides by kind: the first names and the number of further ones."""
    return "; ".join(f"{kind} {_first(names)}" for kind, names in provides.items())


def _first(names: Sequence[str]) -> str:
    more = len(names) - SHOWN_NAMES
    return " ".join(names[:SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")


def described_state(state: PluginState) -> str:
    """Format the state with its reason and its fix."""
    if state.state == "unknown":
        return "unknown: not probed yet; run `llmd doctor`"
    return f"failed ({state.phase}): {state.reason} → {state.fix}" if state.state == "failed" else state.state


COLUMNS = (
    Column[PluginState]("NAME", lambda state: state.name),
    Column[PluginState]("DISTRIBUTION", lambda state: state.distribution),
    Column[PluginState]("VERSION", lambda state: state.version),
    Column[PluginState]("PROVIDES", lambda state: provided(state.provides)),
    Column[PluginState]("STATE", described_state),
)


@click.command("list")
@listing_options
def command(**view: Any) -> None:
    """List installed plugins: what each provides, its state, and why any are not used.

    --json lists every name that a plugin provides. Nothing is imported: the states are from the last run of
    the daemon or of `llmd doctor`.
    """
    from llmd.host.listing import known_states
    from llmd.host.old_keys import with_old_keys

    show(
        View(**view),
        "plugins",
        known_states(build_names(), build_cache(), DEVICE_TRIAL),
        COLUMNS,
        with_old_keys,
    )
