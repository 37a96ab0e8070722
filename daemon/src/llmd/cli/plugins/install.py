"""``llmd plugins install``: shows what would change, installs a plugin and probes it."""

from __future__ import annotations

import click

from llmd.api.errors import PluginError
from llmd.cli.composition import build_cache, build_names
from llmd.cli.output import show_json
from llmd.cli.plugins.listing import provided
from llmd.host.cache import Cache
from llmd.host.installer import Change, checked_target, core_constraints, find_tool
from llmd.host.names import DEVICE_TRIAL, PluginName
from llmd.host.probing import Prober, ProbeReport


@click.command()
@click.argument("target", metavar="NAME|PATH")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(target: str, *, dry_run: bool, as_json: bool) -> None:
    """Install a plugin into llmd's environment and probe it.

    The versions of llmd's own dependencies do not change. PATH is a wheel or a source folder. NAME is a
    distribution on the package index that uv or pip uses, optionally with a version: NAME==1.2.
    """
    tool = find_tool()
    before = set(build_names())
    with core_constraints() as constraints:
        target = checked_target(target)
        changes = tool.changes(target, constraints)
        if not as_json:
            show_changes(changes)
        if not dry_run:
            tool.install(target, constraints)
    reports = {} if dry_run else probe_new(before, changes, build_cache())
    if as_json:
        show_json({"changes": changes, "plugins": [_json(name, report) for name, report in reports.items()]})
    for plugin, report in reports.items():
        if not as_json:
            click.echo(described(plugin, report))
    refuse_failures(reports)


def show_changes(changes: list[Change]) -> None:
    """Print one line for each distribution that changes."""
    if not changes:
        click.echo("nothing to change: already installed")
    for change in changes:
        sign = "+" if not change.before else "-" if not change.after else "~"
        versions = " → ".join(version for version in (change.before, change.after) if version)
        click.echo(f"{sign} {change.distribution} {versions}")


def probe_new(before: set[PluginName], changes: list[Change], cache: Cache) -> dict[PluginName, ProbeReport]:
    """Probe the plugins that were added or replaced. ``llmd plugins list`` shows the results."""
    changed = {change.distribution.lower().replace("_", "-") for change in changes}
    new = [
        plugin
        for plugin in build_names()
        if plugin not in before or plugin.distribution.lower().replace("_", "-") in changed
    ]
    prober = Prober(cache, trial=DEVICE_TRIAL)
    return {plugin: prober.probe(plugin, "nothing") for plugin in new}


def described(plugin: PluginName, report: ProbeReport) -> str:
    """Format the result of a probe: one line, and one more for each device."""
    if report.failure:
        return f"✗ {plugin}: {report.failure.reason}"
    devices = (
        f"  {'✓' if device.ok else '!'} device {' – '.join(filter(None, (device.info.name, device.reason)))}"
        for device in report.devices
    )
    return "\n".join([f"✓ {plugin}: {provided(report.summary.provides)}", *devices])


def refuse_failures(reports: dict[PluginName, ProbeReport]) -> None:
    """Raise an error if a probe failed.

    Raises:
        PluginError: the first failure.
    """
    for plugin, report in reports.items():
        if report.failure:
            raise PluginError(
                f"{plugin} is installed, but its probe failed: {report.failure.reason}",
                hint=report.failure.fix,
            )


def _json(plugin: PluginName, report: ProbeReport) -> dict[str, object]:
    return {
        "name": plugin.name,
        "distribution": plugin.distribution,
        "version": plugin.version,
        "probe": report,
    }
