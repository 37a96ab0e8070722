"""``llmd plugins install``: shows what would change, installs a plugin and probes it."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from llmd.cli.completion.names import installable_names
from llmd.cli.composition import build_cache, build_choices, build_installer
from llmd.cli.examples import examples
from llmd.cli.output import show_json
from llmd.cli.plugins.listing import provided
from llmd.cli.plugins.notices import daemon_notes, say
from llmd.cli.settings import JSON
from llmd.host.installation.environment import Environment
from llmd.host.installation.own import own_distribution
from llmd.host.installation.targets import read_target

if TYPE_CHECKING:
    from llmd.host.installation.installer import Change, Plan
    from llmd.host.names import PluginName
    from llmd.host.probing import ProbeReport


@click.command(
    epilog=examples(
        "llmd plugins install llmd-backend-cpu --dry-run",
        "llmd plugins install ./llmd-backend-mine",
        "llmd plugins install llmd-backend-cpu --upgrade",
    )
)
@click.argument("target", metavar="NAME|PATH|URL", shell_complete=installable_names)
@click.option(
    "--upgrade", is_flag=True, help="Install the newest version that fits, even if one is installed."
)
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@JSON
def command(*, target: str, upgrade: bool, dry_run: bool, as_json: bool) -> None:
    """Try a plugin out, and install it into llmd's environment if it works. Otherwise, nothing is changed.

    NAME is a distribution on the package index that pip or uv uses, optionally with a version: NAME==1.2.
    PATH is a wheel or a source folder, such as ./NAME. URL is that of a wheel, or of a repository: git+https://….
    llmd and its own dependencies keep their versions. A running daemon uses the plugin after `llmd reload`.
    """
    from llmd.host.installation.acceptance import Acceptance  # imports numpy, which a shell must not wait for

    wanted = read_target(target)
    environment = Environment.current()
    if not dry_run:
        environment.check_changeable(f"plugins install {shlex.quote(target)}")
    installer, accept = build_installer(environment), Acceptance(build_cache())
    notes: list[str] = []
    with installer.plan(wanted, upgrade=upgrade) as plan:
        changes = plan.changes
        if changes and not dry_run:
            installer.install(plan, accept)
            remember(environment, plan)
            every = (
                environment.upgrade_note(wanted.requirement),
                *import_notes(accept.reports),
                *daemon_notes(),
            )
            notes = [note for note in every if note]
        if not as_json:
            show_changes(changes, upgrade=upgrade)
    show_result(changes, accept.reports, notes, as_json=as_json)


def show_result(
    changes: list[Change], reports: dict[PluginName, ProbeReport], notes: list[str], *, as_json: bool
) -> None:
    """Print what the installed plugins provide, and the notes."""
    if as_json:
        from llmd.host.installation.acceptance import Installed

        plugins = [Installed.of(plugin, report) for plugin, report in reports.items()]
        show_json({"changes": changes, "plugins": plugins, "notes": notes})
        return
    for plugin, report in reports.items():
        click.echo(described(plugin, report))
    say(notes)


def show_changes(changes: list[Change], *, upgrade: bool = False) -> None:
    """Print one line for each distribution that changes."""
    if not changes:
        hint = "" if upgrade else "; --upgrade looks for a newer version"
        click.echo(f"nothing to change: already installed{hint}")
    for change in changes:
        sign = "+" if not change.before else "-" if not change.after else "~"
        versions = " → ".join(dict.fromkeys(filter(None, (change.before, change.after))))
        click.echo(f"{sign} {change.distribution} {versions}")


def import_notes(plugins: Iterable[PluginName]) -> list[str]:
    """Warn of plugins of others that import more of llmd than its contract, which any version may change."""
    from llmd.testing.plugins.plugin_checks import foreign_imports

    notes = []
    for plugin in plugins:
        with contextlib.suppress(SyntaxError, ValueError):  # of a file that the plugin does not import
            found = [] if own_distribution(plugin.distribution) else foreign_imports(plugin)
            if found:
                notes.append(
                    f"{plugin.name} may stop working with another version of llmd: {found[0]},"
                    f" which is not in llmd.api; `llmd check {shlex.quote(plugin.name)}` shows all"
                )
    return notes


def described(plugin: PluginName, report: ProbeReport) -> str:
    """Format the result of a probe: one line, and one more for each device."""
    devices = (
        f"  {'✓' if device.ok else '!'} device {' – '.join(filter(None, (device.info.name, device.reason)))}"
        for device in report.devices
    )
    return "\n".join([f"✓ {plugin}: {provided(report.summary.provides)}", *devices])


def remember(environment: Environment, plan: Plan) -> None:
    """Write down what was installed, so that `llmd plugins list` can say if an upgrade of llmd removed it."""
    name = plan.built or plan.target.name
    build_choices().add_installed(environment.prefix, name, plan.target.requirement)
