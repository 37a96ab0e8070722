from __future__ import annotations

import msgspec
import pytest

from llmd.builtin.reference import numerics
from llmd.builtin.reference.device import ReferenceDevice
from llmd.testing.trial import small_cases, try_device
from tests.rounding_device import RoundingDevice


def test_the_reference_passes() -> None:
    assert try_device(ReferenceDevice()) == []


def test_a_device_that_computes_wrongly_gets_a_sentence_for_each_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = iter(range(1 << 30))
    right = numerics.attend
    monkeypatch.setattr(numerics, "attend", lambda *args: right(*args) * (1 + 1e-3 * (next(calls) % 2)))
    problems = try_device(ReferenceDevice())
    assert any(problem.startswith("attention/window-f32") for problem in problems)


def test_a_device_is_tried_with_the_arithmetic_and_the_kv_dtype_that_it_claims() -> None:
    device = RoundingDevice("bf16", kv_dtypes=("f16",))
    assert [case.name for case in small_cases(device.info)] == [
        "linear/f32-precision-bf16",
        "attention/window-f16-precision-bf16",
        "program/window-f32-kv-f16-precision-bf16",
    ]
    assert try_device(device) == []
    assert len(try_device(RoundingDevice("bf16", kv_dtypes=("f16",), fault="plain linear"))) == 3


def test_a_device_that_claims_no_attention_is_tried_without_it() -> None:
    device = ReferenceDevice()
    device.info = msgspec.structs.replace(
        device.info, ops=("embed", "linear"), kv_dtypes=(), precisions=("f32",)
    )
    assert [case.name for case in small_cases(device.info)] == ["linear/f32"]
    assert try_device(device) == []
