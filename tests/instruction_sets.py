"""Which instruction sets the CPU backend was tested on: a processor without one has no tests of it.

Tests say so by ``record_property(TESTED, isa)``. The end of a run names the sets that were tested, and those
that were not. ``LLMD_TEST_ISAS=avx512,amx`` makes a run fail where the processor lacks one of them.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Collection, Iterable, Mapping

import pytest

TESTED = "instruction set"
VARIABLE = "LLMD_TEST_ISAS"
KNOWN: Mapping[str, tuple[str, ...]] = {
    "x86_64": ("amx", "avx512", "avx_vnni", "avx2", "generic"),
    "aarch64": ("neon_i8mm", "neon", "generic"),
}
"""Of each kind of machine, the fastest first."""


def pytest_configure() -> None:
    """Refuse to run where the processor lacks what must be tested."""
    wanted = [name for name in os.environ.get(VARIABLE, "").replace(" ", "").split(",") if name]
    if wanted:
        from llmd_backend_cpu._ext import available_isas

        if problem := missing(wanted, available_isas()):
            raise pytest.UsageError(problem)


def missing(wanted: Iterable[str], available: Collection[str]) -> str:
    """What is wrong with the sets that must be tested; empty where the processor has them."""
    known = {name for names in KNOWN.values() for name in names}
    if unknown := [name for name in wanted if name not in known]:
        return f"{VARIABLE} names {', '.join(unknown)}; known are {', '.join(sorted(known))}"
    if lacking := [name for name in wanted if name not in available]:
        return (
            f"{VARIABLE} names {', '.join(lacking)}, which this processor lacks; it has {', '.join(available)}. "
            f"Run the tests on another machine, or take the name out of {VARIABLE}"
        )
    return ""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the sets that tests have run on, whether they passed or not. Nothing where no test has."""
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    properties = [pair for report in reports for pair in getattr(report, "user_properties", ())]
    tested = {str(value) for name, value in properties if name == TESTED}
    if tested:
        terminalreporter.write_line(summary(tested, platform.machine()))


def summary(tested: Collection[str], machine: str) -> str:
    """The sets that were tested, and those of this kind of machine that were not."""
    ordered = [name for names in KNOWN.values() for name in names]
    named = sorted(tested, key=lambda name: ordered.index(name) if name in ordered else len(ordered))
    left_out = [name for name in KNOWN.get(machine, ()) if name not in tested]
    return f"instruction sets tested: {', '.join(named)}; not tested: {', '.join(left_out) or 'none'}"
