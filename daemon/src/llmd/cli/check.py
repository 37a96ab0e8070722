"""``llmd check DEVICE``: the conformance suite."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from llmd.api import INTEGER_FORMATS
from llmd.api.device import DeviceOptions
from llmd.cli.check_progress import CheckProgress
from llmd.cli.completion.names import device_names
from llmd.cli.composition import build_host
from llmd.cli.examples import examples
from llmd.cli.output import show_json
from llmd.cli.settings import JSON, THREADS, read_settings

if TYPE_CHECKING:
    from llmd.api import Device

EXIT_CHECK_FAILED = 8


class CheckedCase(msgspec.Struct, frozen=True):
    """The result of one case."""

    name: str
    ok: bool
    nmse: float | None
    """Error against the reference; None if bits were compared."""
    problem: str


class Suite(msgspec.Struct, frozen=True):
    """The conformance suite of one device."""

    cases: Iterable[CheckedCase]
    """Runs each case when its result is requested."""
    unclaimed: Mapping[str, Sequence[str]] = {}
    """Ops, KV dtypes and formats that the device does not claim; they are not tested."""


@click.command(epilog=examples("llmd check cpu", "llmd check reference --json"))
@click.argument("device", shell_complete=device_names)
@THREADS
@JSON
@click.pass_context
def command(ctx: click.Context, /, *, device: str, threads: int | None, as_json: bool) -> None:
    """Run the conformance suite on a device: every op, every part, whole models, and row exactness.

    DEVICE is a name that `llmd devices` shows. It is tested with the ops, KV dtypes and integer formats that
    it claims; the last line lists the others. On a terminal, a line shows the progress and the estimated time
    left. Exits with 8 if a case fails.
    """
    cases = []
    options = DeviceOptions(read_settings(None, threads=threads).config.engine.threads)
    progress = CheckProgress(sys.stderr)
    suite = run_suite(device, options, progress)
    for case in suite.cases:
        cases.append(case)
        if not as_json:
            progress.clear()
            click.echo(line_of(case))
    failed = sum(not case.ok for case in cases)
    if as_json:
        show_json({"device": device, "failed": failed, "cases": cases, "unclaimed": suite.unclaimed})
    else:
        click.echo(f"{device}: {len(cases) - failed} of {len(cases)} passed{not_tried(suite)}")
    ctx.exit(EXIT_CHECK_FAILED if failed else 0)


def run_suite(device: str, options: DeviceOptions, progress: CheckProgress) -> Suite:
    """Open the device and return its suite. The cases run lazily; the device is closed after the last.

    Raises:
        NotFoundError: there is no such device.
        PluginError: the device cannot be used.
    """
    from llmd.testing.conformance import unclaimed

    host = build_host()
    opened = host.open_device(host.find_device(device), options)
    return Suite(_results(opened, progress), unclaimed(opened.info))


def _results(device: Device, progress: CheckProgress) -> Iterator[CheckedCase]:
    from llmd.testing.conformance import cases_for, check_case

    try:
        for workload in progress.over(cases_for(device.info), lambda case: case.cost):
            for result in check_case(device, workload):
                yield CheckedCase(result.name, not result.problem, result.nmse, result.problem)
    finally:
        device.close()


def not_tried(suite: Suite) -> str:
    """Say what was not tested because the device does not claim it."""
    kinds = {"ops": "ops", "kv_dtypes": "KV as", "features": "features", "formats": "formats"}
    named = [f"{kinds[field]} {', '.join(names)}" for field, names in suite.unclaimed.items()]
    if set(suite.unclaimed.get("formats", ())) == set(INTEGER_FORMATS):
        named[-1] = "all integer formats"
    return f". Not tested, because the device does not claim them: {'; '.join(named)}" if named else ""


def line_of(case: CheckedCase) -> str:
    """Format a case as a line for people."""
    measured = "" if case.nmse is None else f"  NMSE {case.nmse:.1e}"
    return f"{'✓' if case.ok else '✗'} {case.name}{measured}{'  ' + case.problem if case.problem else ''}"
