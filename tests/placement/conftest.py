from __future__ import annotations

from functools import partial

import pytest

from llmd.benchmark import timed_requests
from llmd.engine.placement import alternatives
from llmd.placement.planner import best_plan
from llmd.profiling import time_shares, timed_model
from tests.daemon.profiling.simulated import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of all measurements. It goes on only while a device is waited for.

    Plans do not depend on how busy the machine is: the solver has a minute.
    """
    monkeypatch.setattr(alternatives, "best_plan", partial(best_plan, budget_s=60.0))
    clock = Clock()
    for module in (timed_model, time_shares, timed_requests):
        monkeypatch.setattr(module, "time", clock)
    return clock
