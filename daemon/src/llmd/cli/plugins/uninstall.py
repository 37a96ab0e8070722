"""``llmd plugins uninstall``: removes the distribution of a plugin."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import click

from llmd.api.errors import ConfigError
from llmd.cli.completion.names import removable_names
from llmd.cli.composition import build_choices, build_installer, build_names
from llmd.cli.examples import examples
from llmd.cli.output import show_json
from llmd.cli.plugins.choosing import plugins_named, unknown_plugin
from llmd.cli.plugins.install import show_changes
from llmd.cli.plugins.notices import daemon_notes, say
from llmd.cli.settings import JSON
from llmd.host.installation.environment import Environment
from llmd.host.installation.own import OWN_PLUGINS, how_to_restore, own_distribution
from llmd.host.names import CORE_DISTRIBUTION, PluginName, canonical

if TYPE_CHECKING:
    from llmd.host.installation.installer import Change


@click.command(epilog=examples("llmd plugins uninstall llmd-backend-mine"))
@click.argument("name", shell_complete=removable_names)
@click.option("-y", "--yes", is_flag=True, help="Do not ask before a part of llmd is removed.")
@JSON
def command(*, name: str, yes: bool, as_json: bool) -> None:
    """Uninstall a plugin. NAME is the plugin or its distribution; `llmd plugins list` shows both.

    What the plugin depends on stays installed. Plugins in llmd-daemon can only be disabled:
    `llmd plugins disable NAME`. Other parts of llmd, such as llmd-backend-cpu, are removed if you confirm it.
    """
    environment, choices, plugins = Environment.current(), build_choices(), build_names()
    distribution = distribution_of(name, plugins)
    changes: list[Change] = []
    if distribution is not None:
        environment.check_changeable(f"plugins uninstall {shlex.quote(name)}")
        restoring = confirm_if_own(distribution, sure=yes, may_ask=not as_json)
        changes.append(build_installer(environment).uninstall(distribution))
        every = (restoring, environment.removal_note(distribution), *daemon_notes())
        notes = [note for note in every if note]
    elif canonical(name) in choices.installed_in(environment.prefix):
        notes = [f"{name} is not installed any more; llmd no longer expects it"]
    else:
        raise unknown_plugin(name, plugins)
    choices.remove_installed(environment.prefix, canonical(distribution or name))
    if as_json:
        show_json({"changes": changes, "notes": notes})
        return
    if changes:
        show_changes(changes)
    say(notes)


def confirm_if_own(distribution: str, *, sure: bool, may_ask: bool) -> str:
    """Ask before a part of llmd is removed; return how to get it back, or nothing for other plugins.

    Raises:
        ConfigError: nobody can be asked.
        Abort: the answer is no.
    """
    if not (own := own_distribution(distribution)):
        return ""
    restoring = how_to_restore(own)
    if not sure:
        disable = f"`llmd plugins disable {OWN_PLUGINS[own]}` leaves it installed and unused"
        if not (may_ask and sys.stdin.isatty()):
            raise ConfigError(
                f"{own} is a part of llmd", hint=f"{disable}; --yes removes it. {restoring} again"
            )
        click.echo(f"{own} is a part of llmd. {disable}. {restoring} again.", err=True)
        click.confirm(f"remove {own}?", abort=True, err=True)
    return f"{restoring} again"


def distribution_of(name: str, plugins: tuple[PluginName, ...]) -> str | None:
    """Return the distribution of the plugin that a user named; None if it is not installed.

    Raises:
        ConfigError: it is part of llmd.
    """
    found = {plugin.distribution for plugin in plugins_named(name, plugins)}
    if CORE_DISTRIBUTION in found:
        raise ConfigError(
            f"{name} is part of llmd and cannot be uninstalled", hint=f"run `llmd plugins disable {name}`"
        )
    if len(found) > 1:
        raise ConfigError(
            f"several distributions have a plugin {name}: {', '.join(sorted(found))}",
            hint="name the distribution",
        )
    return next(iter(found), None)
