from __future__ import annotations

import msgspec
import pytest

from llmd.api import ActivationDtype, Precision
from llmd.builtin.reference.device import ReferenceDevice
from llmd.models.arithmetic import Arithmetic, chosen_arithmetic


@pytest.mark.parametrize(
    ("activations", "precisions", "asked", "expected"),
    [
        (("int8", "f32"), ("f32",), None, ("int8", "f32")),
        (("int8", "f32"), ("f32",), "f32", ("f32", "f32")),
        (("f16", "int8"), ("bf16", "f16"), None, ("f16", "f16")),
        (("f16", "int8"), ("bf16", "f16"), "int8", ("int8", "bf16")),
        (("int8",), ("bf16", "f16"), "f16", ("f16", "f16")),
    ],
)
def test_a_float_type_is_the_precision_too_and_with_int8_the_device_chooses(
    activations: tuple[ActivationDtype, ...],
    precisions: tuple[Precision, ...],
    asked: ActivationDtype | None,
    expected: tuple[ActivationDtype, Precision],
) -> None:
    info = msgspec.structs.replace(ReferenceDevice().info, activations=activations, precisions=precisions)
    assert chosen_arithmetic(info, asked) == Arithmetic(*expected)
