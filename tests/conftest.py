"""Rules that hold for every test."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings

from llmd.api.machine import num_processors
from tests.short_run import LIST, kept_cases, mark_exhaustive, unused_patterns

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

pytest_plugins = [
    "tests.environments",
    "tests.plugin_sites",
    "tests.shapes_of_replies",
    "tests.instruction_sets",
    "tests.serving.home",
]

PACKAGING_TIMEOUT_S = 300

# A shell lets what it starts in the background ignore Ctrl-C, and so would all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long one example takes, or the making of it, says more of the machine than of the code.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_xdist_auto_num_workers() -> int:
    """Run one process more than there are processors: many tests wait for a part of their time."""
    return num_processors() + 1


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Most cases of the longest tests are exhaustive. Tests that build or install distributions get a longer
    limit; those with long limits come first.

    Where processes share the tests, the last of them to end is then left with a short one.
    """
    kept = kept_cases()
    mark_exhaustive(items, kept)
    if config.args == config.getini("testpaths"):
        unused = unused_patterns([item.nodeid for item in items], kept)
        if unused:
            raise pytest.UsageError(f"{LIST.name} names what no test has: {', '.join(unused)}")
    for item in items:
        if item.get_closest_marker("packaging") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(PACKAGING_TIMEOUT_S))
    items.sort(key=limit_s, reverse=True)


def pytest_collection_finish() -> None:
    """Leave what collecting made out of garbage collections, which else walk a million objects each time."""
    gc.collect()
    gc.freeze()


def limit_s(item: pytest.Item) -> float:
    """How many seconds a test has, where that is not what every test has."""
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker else 0.0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a skip is a failure: what CI does not run, nobody runs."""
    return failed_if_skipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """As above, for modules that skip themselves whole."""
    return failed_if_skipped((yield))


def failed_if_skipped(report: Report) -> Report:
    """``report``, turned into a failure if it is a skip and this is CI."""
    if os.environ.get("CI") and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report
