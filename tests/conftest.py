"""Rules that hold for every test."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

PACKAGING_TIMEOUT_S = 300


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that build or install distributions get a longer limit."""
    for item in items:
        if item.get_closest_marker("packaging") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(PACKAGING_TIMEOUT_S))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a skip is a failure: what CI does not run, nobody runs."""
    report = yield
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report
