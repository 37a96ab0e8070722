from __future__ import annotations

import pytest

from llmd.benchmark import timed_requests
from llmd.profiling import time_shares, timed_model
from tests.daemon.profiling.simulated import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of all measurements. It goes on only while a device is waited for."""
    clock = Clock()
    for module in (timed_model, time_shares, timed_requests):
        monkeypatch.setattr(module, "time", clock)
    return clock
