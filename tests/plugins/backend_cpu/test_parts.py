"""Weights: mapped where they lie, packed where they are int8, kept as long as something reads them."""

from __future__ import annotations

import gc
import math

import numpy as np
import pytest

from llmd.api import KVGroup, MemoryBudgetError, StageLimits, WeightData
from llmd.models.formats.dequantization import dequantize
from llmd.models.formats.quantization import quantize
from llmd_backend_cpu import parts
from llmd_backend_cpu.device import CpuDevice
from tests.plugins.backend_cpu.workbench import (
    Weights,
    attention,
    linear,
    middle_program,
    open_stage,
    plain,
    random_rows,
    run_rows,
)


def no_progress(_done: int, _total: int) -> None:
    pass


def test_plain_weights_are_read_where_they_lie(device: CpuDevice) -> None:
    weight = np.eye(40, dtype=np.float32)
    stage = open_stage(
        device, middle_program([linear(40)], 40, {}, None), {"w": WeightData("f32", weight.view())}
    )
    x = random_rows(2, 40)
    np.testing.assert_array_equal(run_rows(stage, x), x)
    weight *= 2
    np.testing.assert_array_equal(run_rows(stage, x), 2 * x)


def test_weights_may_lie_at_any_multiple_of_their_element(device: CpuDevice) -> None:
    values = random_rows(33, 33).astype(np.float16)
    for shift in (2, 6, 10, 62):
        memory = np.zeros(values.nbytes + 64, np.uint8)
        place = memory[shift : shift + values.nbytes].view(np.float16).reshape(values.shape)
        place[:] = values
        stage = open_stage(
            device, middle_program([linear(33)], 33, {"w": "f16"}, None), {"w": WeightData("f16", place)}
        )
        x = random_rows(3, 33)
        np.testing.assert_allclose(run_rows(stage, x), x @ values.astype(np.float32).T, rtol=1e-4, atol=1e-4)


def test_weights_live_as_long_as_a_stage_uses_them(device: CpuDevice) -> None:
    stage = open_stage(
        device, middle_program([linear(64)], 64, {}, None), {"w": plain(random_rows(64, 64, 1))}
    )
    gc.collect()
    filler = [np.full((64, 64), np.nan, np.float32) for _ in range(64)]
    x = random_rows(4, 64, 2)
    np.testing.assert_allclose(run_rows(stage, x), x @ random_rows(64, 64, 1).T, rtol=1e-4, atol=1e-4)
    assert filler


def test_int8_weights_of_any_shape_come_near_their_plain_product(device: CpuDevice) -> None:
    for width in (4, 31, 33, 65, 129):
        weight = quantize(random_rows(width, width, 1), "q8")
        program = middle_program([linear(width)], width, {"w": "q8"}, None)
        x = random_rows(3, width, 2)
        expected = x.astype(np.float64) @ dequantize(weight).astype(np.float64).T
        error = run_rows(open_stage(device, program, {"w": weight}), x) - expected
        assert float(np.sum(error**2) / np.sum(expected**2)) < 1e-3


def test_progress_ends_with_all_bytes(device: CpuDevice) -> None:
    program = middle_program([linear(64, bias=True)], 64, {"w": "bf16"}, None)
    weights = Weights({"w": WeightData("bf16", np.zeros((64, 64), np.uint16)), "b": plain(np.zeros(64))})
    calls: list[tuple[int, int]] = []
    device.load(program, weights, lambda done, total: calls.append((done, total)))
    assert calls == [(8192, 8448), (8448, 8448)]


def test_int8_weights_that_cannot_fit_are_refused_before_they_are_read(
    device: CpuDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "available_bytes", lambda: 4000)
    with pytest.raises(MemoryBudgetError, match="packed weights of 4224 bytes do not fit the 4000 bytes"):
        device.load(middle_program([linear(64)], 64, {"w": "q8"}, None), Weights({}), no_progress)


def test_pools_that_cannot_fit_are_refused_with_the_arithmetic(device: CpuDevice) -> None:
    group = KVGroup(0, None, 1, 16, (0,))
    weights = Weights({name: plain(np.zeros((16, 32))) for name in ("k", "v")})
    loaded = device.load(middle_program(attention(2, 1, 16), 32, {}, group), weights, no_progress)
    assert loaded.free_bytes() > 0
    with pytest.raises(MemoryBudgetError, match=r"KV pools of \d+ bytes do not fit the \d+ bytes"):
        loaded.stage({0: 1 << 40}, StageLimits(1, 1, 1))


def test_a_block_takes_keys_and_values_of_all_its_layers(device: CpuDevice) -> None:
    group = KVGroup(0, None, 2, 12, (0,))
    program = middle_program(attention(4, 2, 12), 48, {}, group)
    weights = Weights({name: plain(np.zeros((24, 48))) for name in ("k", "v")})
    loaded = device.load(program, weights, no_progress)
    padded = math.ceil(12 / 16) * 16
    assert loaded.kv_bytes(0, "f32") == 2 * 2 * 16 * padded * 4
    assert loaded.kv_bytes(0, "f16") == 2 * 2 * 16 * padded * 2


def test_closed_parts_make_no_stage(device: CpuDevice) -> None:
    loaded = device.load(
        middle_program([linear(8)], 8, {}, None), Weights({"w": plain(np.eye(8))}), no_progress
    )
    loaded.close()
    loaded.close()
    with pytest.raises(ValueError, match="closed"):
        loaded.stage({}, StageLimits(1, 1, 1))


def test_weights_that_contradict_the_program_are_refused(device: CpuDevice) -> None:
    program = middle_program([linear(8)], 8, {}, None)
    loaded = device.load(program, Weights({"w": plain(np.zeros((8, 9)))}), no_progress)
    with pytest.raises(ValueError, match="weights have the width of its input"):
        loaded.stage({}, StageLimits(1, 1, 1))
