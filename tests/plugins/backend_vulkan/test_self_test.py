"""A device whose results differ is found."""

from __future__ import annotations

import numpy as np
import pytest

from llmd_backend_vulkan import self_test
from llmd_backend_vulkan.memory import Arena
from llmd_backend_vulkan.self_test import difference


def test_a_device_that_computes_rightly_has_no_difference(arena: Arena) -> None:
    assert difference(arena) == ""


@pytest.mark.parametrize("wrong", [0.0, np.nan, 1.001])
def test_a_device_that_computes_wrongly_is_found(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, wrong: float
) -> None:
    rightly = self_test._computed
    monkeypatch.setattr(self_test, "_computed", lambda arena, rows: rightly(arena, rows) * np.float32(wrong))
    assert "differ from the reference's" in difference(arena)


def test_most_of_its_float16_weights_are_subnormal() -> None:
    values = np.abs(self_test._values(self_test._PLAIN).astype(np.float64))
    assert np.mean(values < 2.0**-14) > 0.9
