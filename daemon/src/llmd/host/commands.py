"""Loads the commands of plugins."""

from __future__ import annotations

import logging

import click

from llmd.api.errors import LlmdError, PluginError
from llmd.api.plugins import Command
from llmd.host.description import replacement
from llmd.host.names import PluginName

log = logging.getLogger(__name__)


def loaded(plugin: PluginName, command: Command) -> click.Command:
    """Import a command.

    Raises:
        PluginError: it cannot be imported, or is not a ``click.Command``.
    """
    try:
        found = command.load()
    except LlmdError:
        raise
    except Exception as error:  # plugin code may raise anything
        log.warning(
            "command_not_loaded", exc_info=True, extra={"plugin": plugin.name, "subcommand": command.name}
        )
        raise _error(plugin, command, f"raised {type(error).__name__}: {error}") from error
    if not isinstance(found, click.Command):
        raise _error(plugin, command, f"returned a {type(found).__name__}, not a click.Command")
    return found


def _error(plugin: PluginName, command: Command, what: str) -> PluginError:
    return PluginError(
        f"loading `llmd {command.name}` of plugin {plugin} {what}",
        hint=f"{replacement(plugin)}; report it to its authors",
    )
