"""A few cases of the conformance suite; `llmd check example` runs all of it."""

from __future__ import annotations

import pytest

from llmd.api import DeviceOptions
from llmd.testing.conformance import all_cases, check_case
from llmd_backend_example.plugin import llmd_backends


@pytest.mark.parametrize("name", ["linear/f32", "norm/rms"])
def test_computes_like_the_reference(name: str) -> None:
    (backend,) = llmd_backends()
    (info,) = backend.probe()
    device = backend.open(info.name, DeviceOptions())
    (case,) = [one for one in all_cases() if one.name == name]
    assert [result.problem for result in check_case(device, case)] == [""]
    device.close()
