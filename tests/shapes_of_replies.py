"""Fails a test during which a daemon sent a reply that is not as `tests/serving/open_responses/` has it."""

from __future__ import annotations

import sys
from collections.abc import Generator

import pytest

CHECKED = "tests.serving.checked_replies"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    """Check the recorded replies after the test.
    If no daemon ran, there are none, and nothing is imported.
    """
    try:
        yield
    finally:
        mistakes = sys.modules[CHECKED].take_mistakes() if CHECKED in sys.modules else []
    if mistakes:
        pytest.fail("a daemon sent what is not in its shape:\n" + "\n".join(mistakes), pytrace=False)
