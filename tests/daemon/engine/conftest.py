from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from llmd.api import Device
from llmd.builtin.reference.device import ReferenceDevice
from llmd.engine.core import EngineCore
from tests.serving import cores

MakeCore = Callable[..., EngineCore]


@pytest.fixture(params=cores.STEPS_IN_FLIGHT)
def make_core(request: pytest.FixtureRequest) -> MakeCore:
    """Return a function that builds a core on the reference. Tests run in each of `STEPS_IN_FLIGHT`."""

    def make(device: Device | None = None, **options: Any) -> EngineCore:
        return cores.make_core(
            device or ReferenceDevice(), depth=request.param[0], draws=request.param[1], **options
        )

    return make
