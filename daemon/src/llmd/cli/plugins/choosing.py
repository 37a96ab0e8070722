"""Finds the plugin that a user named; what ``llmd plugins enable`` and ``disable`` share."""

from __future__ import annotations

import difflib
import shlex

import click

from llmd.api.errors import ConfigError, NotFoundError
from llmd.cli.composition import build_choices, build_names
from llmd.cli.output import show_json
from llmd.cli.plugins.notices import choice_notes, say
from llmd.host.names import PluginName, canonical

NEEDED = {"commands": "the commands that you are typing", "native": "what commands ask a running daemon"}
"""Plugins without which llmd cannot be used, with what they provide."""


def choose(name: str, *, enabled: bool, as_json: bool) -> None:
    """Enable or disable a plugin and print its new state.

    Raises:
        NotFoundError: there is no plugin of that name.
        ConfigError: llmd cannot be used without it.
    """
    choices = build_choices()
    known = choices.load().disabled
    plugin = name if enabled and name in known else find_plugin(name, build_names()).name
    if not enabled and plugin in NEEDED:
        raise ConfigError(
            f"{plugin} cannot be disabled: it provides {NEEDED[plugin]}", hint="leave it enabled"
        )
    changed = choices.set_enabled(plugin, enabled=enabled)
    command = f"plugins {'enable' if enabled else 'disable'} {shlex.quote(plugin)}"
    notes = choice_notes(command) if changed else []
    if as_json:
        show_json({"plugin": plugin, "enabled": enabled, "changed": changed, "notes": notes})
        return
    word = "enabled" if enabled else "disabled"
    click.echo(f"{plugin} is {'now' if changed else 'already'} {word}")
    say(notes)


def plugins_named(name: str, plugins: tuple[PluginName, ...]) -> list[PluginName]:
    """Return the plugins of that name, then those of a distribution of that name."""
    named = [plugin for plugin in plugins if plugin.name == name]
    return named + [plugin for plugin in plugins if canonical(plugin.distribution) == canonical(name)]


def find_plugin(name: str, plugins: tuple[PluginName, ...]) -> PluginName:
    """Return the installed plugin of that name, or the first one of a distribution of that name.

    Raises:
        NotFoundError: there is none; the hint has the nearest name.
    """
    if named := plugins_named(name, plugins):
        return named[0]
    raise unknown_plugin(name, plugins)


def unknown_plugin(name: str, plugins: tuple[PluginName, ...]) -> NotFoundError:
    """Return the error for a name that no plugin has, with the nearest name."""
    close = difflib.get_close_matches(name, [plugin.name for plugin in plugins], n=1)
    return NotFoundError(
        f"there is no plugin {name!r}",
        hint=f"did you mean {close[0]}? `llmd plugins list` shows all"
        if close
        else "see `llmd plugins list`",
    )
