"""``llmd plugins list``: installed plugins and their stored states. No plugin is imported."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from llmd.cli.composition import build_cache, build_choices, build_names
from llmd.cli.output import Column, View, listing_options, show
from llmd.host.names import DEVICE_TRIAL, PluginName
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
    if state.state == "failed":
        return f"failed ({state.phase}): {state.reason} → {state.fix}"
    return f"{state.state}: {state.reason} → {state.fix}" if state.reason else state.state


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
    from llmd.host.old_keys import with_old_keys

    show(View(**view), "plugins", all_states(), COLUMNS, with_old_keys)


def all_states() -> tuple[PluginState, ...]:
    """Return the states of installed plugins, then those of plugins that an upgrade removed."""
    from llmd.host.listing import known_states

    plugins, disabled = build_names(), build_choices().load().disabled
    return (*known_states(plugins, build_cache(), DEVICE_TRIAL, disabled), *missing_plugins(plugins))


def missing_plugins(plugins: Sequence[PluginName]) -> tuple[PluginState, ...]:
    """Return a row for each plugin that was installed and that an upgrade of the environment removed;
    ``plugins`` are those that are there.
    """
    from llmd.host.listing import missing_states

    return missing_states(build_choices().installed_in(Path(sys.prefix)), plugins)
