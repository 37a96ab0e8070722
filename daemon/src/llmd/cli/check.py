"""``llmd check NAME``: the conformance suite of a device, or the checks of a plugin."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from llmd.api import INTEGER_FORMATS, SCALED_FORMATS
from llmd.api.device import DeviceOptions
from llmd.api.errors import ConfigError, NotFoundError
from llmd.cli.check_progress import CheckProgress
from llmd.cli.completion.names import device_and_plugin_names
from llmd.cli.composition import build_host, build_names
from llmd.cli.examples import examples
from llmd.cli.failures import EXIT_CHECK_FAILED
from llmd.cli.output import show_json
from llmd.cli.plugins.choosing import plugins_named
from llmd.cli.settings import JSON, THREADS, read_settings
from llmd.host.installation.targets import existing_path

if TYPE_CHECKING:
    from llmd.api import Device
    from llmd.host.devices import DeviceState
    from llmd.host.names import PluginName
    from llmd.host.plugin_host import PluginHost
    from llmd.testing.plugins.results import NotTested


class CheckedCase(msgspec.Struct, frozen=True):
    """The result of one case."""

    name: str
    ok: bool
    nmse: float | None
    """Error against the reference; None if bits were compared."""
    problem: str


class Suite(msgspec.Struct, frozen=True):
    """The conformance suite of one device, or the checks of one plugin."""

    cases: Iterable[CheckedCase]
    """Runs each case when its result is requested."""
    unclaimed: Mapping[str, Sequence[str]] = {}
    """Ops, KV dtypes and formats that the device does not claim; they are not tested."""
    skipped: Sequence[NotTested] = ()
    """What could not be tested of a plugin. Complete after the last case."""


@click.command(epilog=examples("llmd check cpu", "llmd check reference --json"))
@click.argument("name", shell_complete=device_and_plugin_names)
@THREADS
@JSON
@click.pass_context
def command(ctx: click.Context, /, *, name: str, threads: int | None, as_json: bool) -> None:
    """Check a device or a plugin against the contract.

    NAME is a device that `llmd devices` shows: the conformance suite runs every op, every part, whole models,
    and checks row exactness, with the ops, KV dtypes and integer formats that the device claims. Or NAME is a
    plugin that `llmd plugins list` shows, its distribution, or something that it provides: everything that it
    provides is checked, its devices too. The last line lists what was not tested. On a terminal, a line shows
    the progress and the estimated time left. Exits with 8 if a case fails.
    """
    cases = []
    options = DeviceOptions(read_settings(None, threads=threads).config.engine.threads)
    progress = CheckProgress(sys.stderr)
    suite = run_suite(name, options, progress)
    for case in suite.cases:
        cases.append(case)
        if not as_json:
            progress.clear()
            click.echo(line_of(case))
    failed = sum(not case.ok for case in cases)
    if as_json:
        rest = {"unclaimed": suite.unclaimed, "skipped": suite.skipped}
        show_json({"device": name, "failed": failed, "cases": cases, **rest})
    else:
        click.echo(f"{name}: {len(cases) - failed} of {len(cases)} passed{not_tried(suite)}")
    ctx.exit(EXIT_CHECK_FAILED if failed else 0)


def run_suite(name: str, options: DeviceOptions, progress: CheckProgress) -> Suite:
    """Return the suite of a device or a plugin. The cases run lazily; devices are closed after their last.

    Raises:
        NotFoundError: there is no device and no plugin of that name.
        PluginError: the device cannot be used.
        ConfigError: it is a path.
    """
    refuse_path(name)
    host = build_host()
    plugin = next(iter(plugins_named(name, build_names())), None)
    if plugin is None or "backend" in provided_by(host, plugin):
        try:
            return device_suite(host, host.find_device(name), options, progress)
        except NotFoundError as error:
            plugin = plugin or providing(host, name)
            if plugin is None:
                raise NotFoundError(
                    f"there is no device and no plugin {name!r}",
                    hint=f"{error.hint} and `llmd plugins list`. A plugin that is not installed cannot be checked:"
                    " run `llmd plugins install PATH` first",
                ) from error
    skipped: list[NotTested] = []
    return Suite(_plugin_results(host, plugin, options, progress, skipped), skipped=skipped)


def refuse_path(name: str) -> None:
    """Refuse a folder or a wheel, which is no name.

    Raises:
        ConfigError: it is one.
    """
    if existing_path(name) is not None:
        raise ConfigError(
            f"{name} is a path, and only what is installed can be checked",
            hint=f"install it first: `llmd plugins install {shlex.quote(name)}`, then run `llmd check` with the"
            " name that is printed",
        )


def providing(host: PluginHost, name: str) -> PluginName | None:
    """Return the plugin that provides something of that name, such as a parser; None if there is none."""
    return next(
        (one for one in host.names if any(name in names for names in host.summary(one).provides.values())),
        None,
    )


def device_suite(
    host: PluginHost, device: DeviceState, options: DeviceOptions, progress: CheckProgress
) -> Suite:
    """Open a device and return its suite."""
    from llmd.testing.conformance import unclaimed

    opened = host.open_device(device, options)
    return Suite(_results(opened, progress), unclaimed(opened.info))


def provided_by(host: PluginHost, plugin: PluginName) -> Collection[str]:
    """Return the kinds that a plugin provides."""
    states = (state for state in host.plugins() if (state.name, state.module) == (plugin.name, plugin.module))
    return next((state.provides for state in states), {})


def _plugin_results(
    host: PluginHost,
    plugin: PluginName,
    options: DeviceOptions,
    progress: CheckProgress,
    skipped: list[NotTested],
) -> Iterator[CheckedCase]:
    from llmd.testing.plugins.plugin_checks import check_plugin
    from llmd.testing.plugins.results import NotTested

    for result in check_plugin(plugin):
        if isinstance(result, NotTested):
            skipped.append(result)
        else:
            yield CheckedCase(result.name, not result.problem, result.nmse, result.problem)
    if "backend" in provided_by(host, plugin):
        for device in (one for one in host.devices() if one.plugin == plugin):
            if device.ok:
                yield from device_suite(host, device, options, progress).cases
            else:
                skipped.append(NotTested(f"device {device.info.name}", device.reason))


def _results(device: Device, progress: CheckProgress) -> Iterator[CheckedCase]:
    from llmd.testing.conformance import cases_for, check_case

    try:
        for workload in progress.over(cases_for(device.info), lambda case: case.cost):
            for result in check_case(device, workload):
                yield CheckedCase(result.name, not result.problem, result.nmse, result.problem)
    finally:
        device.close()


def not_tried(suite: Suite) -> str:
    """Say what was not tested: what a device does not claim, or what could not be tested of a plugin."""
    if suite.skipped:
        return f". Not tested: {'; '.join(f'{one.what} ({one.reason})' for one in suite.skipped)}"
    kinds = {"ops": "ops", "kv_dtypes": "KV as", "features": "features", "formats": "formats"}
    named = [f"{kinds[field]} {', '.join(names)}" for field, names in suite.unclaimed.items()]
    if set(suite.unclaimed.get("formats", ())) == {*INTEGER_FORMATS, *SCALED_FORMATS}:
        named[-1] = "all formats but plain ones"
    return f". Not tested, because the device does not claim them: {'; '.join(named)}" if named else ""


def line_of(case: CheckedCase) -> str:
    """Format a case as a line for people."""
    measured = "" if case.nmse is None else f"  NMSE {case.nmse:.1e}"
    return f"{'✓' if case.ok else '✗'} {case.name}{measured}{'  ' + case.problem if case.problem else ''}"
