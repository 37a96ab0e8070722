"""``llmd doctor``: checks everything afresh and suggests fixes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import click

from llmd.cli.doctor.check import Check, Surroundings, surroundings
from llmd.cli.examples import examples
from llmd.cli.failures import EXIT_CHECK_FAILED
from llmd.cli.output import Column, View, listing_options, show
from llmd.cli.plugins.notices import repair_interrupted
from llmd.host.old_keys import with_old_keys

log = logging.getLogger(__name__)

TOPICS = (
    "environment",
    "limits",
    "machine",
    "clock",
    "folders",
    "settings",
    "keys",
    "certificate",
    "addresses",
    "daemon",
    "models",
    "plugins",
)
"""Modules of this package with a function ``checks``, in the order in which their checks are shown."""
SYMBOLS = {"ok": "✓ ok", "warn": "! warn", "fail": "✗ fail"}
COLUMNS = (
    Column[Check]("CHECK", lambda check: check.id),
    Column[Check]("STATUS", lambda check: SYMBOLS[check.status], lambda check: check.status),
    Column[Check]("SEEN", lambda check: check.seen),
    Column[Check]("FIX", lambda check: check.fix, old_title="MEND"),
)


@click.command(epilog=examples("llmd doctor", "llmd doctor settings folders", "llmd doctor --json"))
@click.argument("topics", nargs=-1, type=click.Choice(TOPICS), metavar="[TOPIC]…")
@click.option("--problems", "only_problems", is_flag=True, help="Show only what is not ok.")
@listing_options
@click.pass_context
def command(ctx: click.Context, /, *, topics: tuple[str, ...], only_problems: bool, **view: Any) -> None:
    """Check this installation and suggest fixes.

    TOPIC is environment, limits, machine, clock, folders, settings, keys, certificate, addresses, daemon,
    models or plugins; without one, all are checked. Every plugin is described and probed again; stored
    results are ignored. Exits with 8 if a check fails.
    """
    repair_interrupted()
    around = surroundings()
    checks = [check for topic in topics or TOPICS for check in checks_of(topic, around)]
    shown = [check for check in checks if check.status != "ok"] if only_problems else checks
    chosen = View(**view)
    if shown or chosen.as_json or chosen.plain:
        show(chosen, "checks", shown, COLUMNS, with_old_keys)
    else:
        click.echo("no problems found")
    ctx.exit(EXIT_CHECK_FAILED if any(check.status == "fail" for check in checks) else 0)


def checks_of(topic: str, around: Surroundings) -> Iterator[Check]:
    """Yield the checks of a topic. If one cannot be made, the others still are."""
    try:
        yield from import_module(f"llmd.cli.doctor.{topic}").checks(around)
    except Exception as error:
        log.info("check_failed", exc_info=True, extra={"topic": topic})
        seen = f"it could not be checked: {type(error).__name__}: {error}"
        yield Check(topic, "warn", seen, f"see where with `llmd -v doctor {topic}`, and report it")
