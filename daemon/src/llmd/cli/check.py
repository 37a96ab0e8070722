"""``llmd check DEVICE``: the conformance suite."""

from __future__ import annotations

from collections.abc import Iterable

import click
import msgspec

from llmd.api.device import DeviceOptions
from llmd.cli.composition import build_host
from llmd.cli.examples import examples
from llmd.cli.output import show_json
from llmd.cli.settings import JSON, THREADS, read_settings

EXIT_CHECK_FAILED = 8


class CheckedCase(msgspec.Struct, frozen=True):
    """One case; ``nmse`` against the reference, None where bits were compared."""

    name: str
    ok: bool
    nmse: float | None
    problem: str


@click.command(epilog=examples("llmd check cpu", "llmd check reference --json"))
@click.argument("device")
@THREADS
@JSON
@click.pass_context
def command(ctx: click.Context, /, *, device: str, threads: int | None, as_json: bool) -> None:
    """Run the conformance suite on a device: every op, every part, whole models, and row exactness.

    DEVICE is a name that `llmd devices` shows. Ends with 8 where a case failed.
    """
    cases = []
    options = DeviceOptions(read_settings(None, threads=threads).config.engine.threads)
    for case in run_suite(device, options):
        cases.append(case)
        if not as_json:
            click.echo(line_of(case))
    failed = sum(not case.ok for case in cases)
    if as_json:
        show_json({"device": device, "failed": failed, "cases": cases})
    else:
        click.echo(f"{device}: {len(cases) - failed} of {len(cases)} passed")
    ctx.exit(EXIT_CHECK_FAILED if failed else 0)


def run_suite(device: str, options: DeviceOptions) -> Iterable[CheckedCase]:
    """Open the device and yield each case when it has been run.

    Raises:
        NotFoundError: there is no such device.
        PluginError: it cannot be used.
    """
    from llmd.testing.conformance import check_device

    host = build_host()
    opened = host.open_device(host.find_device(device), options)
    try:
        for result in check_device(opened):
            yield CheckedCase(result.name, not result.problem, result.nmse, result.problem)
    finally:
        opened.close()


def line_of(case: CheckedCase) -> str:
    """A case as a line for people."""
    measured = "" if case.nmse is None else f"  NMSE {case.nmse:.1e}"
    return f"{'✓' if case.ok else '✗'} {case.name}{measured}{'  ' + case.problem if case.problem else ''}"
