"""A stage that claims to name its kernels does so."""

from __future__ import annotations

import msgspec
import pytest

from llmd.api.features import KERNELS
from llmd.api.kernel_use import KernelUse, SlowPath
from llmd.builtin.reference.device import ReferenceDevice
from llmd.builtin.reference.stage import ReferenceStage
from llmd.testing.conformance import all_cases, check_case
from llmd.testing.kernel_names import wrong_kernels

(CASE,) = (case for case in all_cases() if case.times_steps)


@pytest.mark.parametrize(
    ("use", "is_right"),
    [
        (KernelUse(("NumPy",)), True),
        (KernelUse((), (SlowPath("computes slowly"),)), True),
        (KernelUse(), False),
        (KernelUse(("NumPy", "")), False),
    ],
)
def test_a_stage_names_its_kernels(
    monkeypatch: pytest.MonkeyPatch, use: KernelUse, *, is_right: bool
) -> None:
    monkeypatch.setattr(ReferenceStage, "kernels", lambda _self: use, raising=False)
    device = ReferenceDevice()
    assert (wrong_kernels(device, CASE) == "") is is_right
    names = [result.name for result in check_case(device, CASE)]
    assert f"{CASE.name} kernels" not in names, "the device does not claim it"
    device.info = msgspec.structs.replace(device.info, features=(*device.info.features, KERNELS))
    (result,) = (one for one in check_case(device, CASE) if one.name == f"{CASE.name} kernels")
    assert (result.problem == "") is is_right
