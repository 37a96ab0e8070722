"""Plain weights are mapped, integers packed, with strips if inputs may be zero; they live while used."""

from __future__ import annotations

import gc
import math
import re
from pathlib import Path

import numpy as np
import pytest

from llmd.api import (
    HIDDEN,
    INTEGER_FORMATS,
    Activate,
    KVGroup,
    Linear,
    MemoryBudgetError,
    Op,
    Program,
    StageLimits,
    TensorRef,
    WeightData,
    step_buffer_bytes,
)
from llmd.api.byte_size import format_bytes
from llmd.api.step import Float32
from llmd.models.formats.dequantization import dequantize
from llmd.models.formats.gguf_blocks import BLOCK_FORMATS, decode
from llmd.models.formats.quantization import quantize
from llmd.testing.integer_weights import random_blocks
from llmd_backend_cpu import _ext
from llmd_backend_cpu import weights as weights_module
from llmd_backend_cpu.device import CpuDevice
from tests.plugins.backend_cpu.workbench import (
    Weights,
    attention,
    dequantized,
    linear,
    middle_program,
    open_stage,
    plain,
    random_integers,
    random_rows,
    run_rows,
)

HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage")


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


@pytest.mark.skipif(not HUGE_PAGES.exists(), reason="the kernel has no huge pages to ask for")
def test_plain_weights_of_a_file_are_wanted_in_huge_pages(device: CpuDevice, tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(bytes(1024 * 1024 * 2))
    weight = np.memmap(path, np.uint16, "r", shape=(1024, 1024))
    program = middle_program([linear(1024)], 1024, {"w": "bf16"}, None)
    loaded = device.load(program, Weights({"w": WeightData("bf16", weight)}), no_progress)
    # Each mapping has a line with its addresses and path, then lines with its properties.
    _, _, of_file = Path("/proc/self/smaps").read_text().partition(f"{path}\n")
    (flags,) = re.findall("^VmFlags:(.*)$", of_file, re.MULTILINE)[:1]
    loaded.close()
    assert "hg" in flags.split()


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


def rounded_after_each_group(x: Float32, weight: WeightData) -> Float32:
    """The product with weights of two levels whose coarse scales, and those of the activations, are 1."""
    form = INTEGER_FORMATS[weight.format]
    assert weight.scales is not None
    assert weight.scales.fine is not None
    inputs = x.astype(np.float64).reshape(len(x), 1, -1, form.group_size)
    products = (inputs * weight.integers().reshape(1, len(weight.data), -1, form.group_size)).sum(axis=3)
    products *= weight.scales.fine
    minimums = inputs.sum(axis=3) if form.has_minimum else np.zeros((1, 1, products.shape[2]))
    together = form.coarse_size // form.group_size
    total = np.zeros(products.shape[:2], np.float32)
    for first in range(0, products.shape[2], together):
        inner = np.zeros_like(total)
        for group in range(first, first + together):
            inner = (inner + products[:, :, group]).astype(np.float32)
        total += inner
        total += minimums[:, :, first : first + together].sum(axis=2).astype(np.float32)
    return total


@pytest.mark.parametrize("fmt", ["q4_k", "q5_k", "q6_k", "iq4_xs"])
def test_sums_that_are_too_large_for_float32_are_rounded_alike(device: CpuDevice, fmt: str) -> None:
    """By every instruction set, with one row and with several."""
    form, width = INTEGER_FORMATS[fmt], 512
    weight = random_integers(fmt, width, width, plain_scales=True)
    codes = weight.data.view(np.uint8)
    codes |= np.uint8(3 << form.bits - 2)  # large ones
    assert weight.scales is not None
    assert weight.scales.fine is not None
    weight.scales.fine[:] = (1 << form.fine_bits - (not form.has_minimum)) - 1
    x = np.random.default_rng(3).integers(96, 128, (19, width)).astype(np.float32)
    x[:, :: form.coarse_size] = 127  # makes the scale of each activation group 1
    expected = rounded_after_each_group(x, weight)
    assert np.abs(expected).min() > 1 << 25, "float32 has every integer up to half of that"
    assert (expected != (x @ dequantized(weight).T).astype(np.float32)).any(), "rounded more than once"
    stage = open_stage(device, middle_program([linear(width)], width, {"w": fmt}, None), {"w": weight})
    np.testing.assert_array_equal(run_rows(stage, x), expected)
    np.testing.assert_array_equal(run_rows(stage, x[:1]), expected[:1])


@pytest.mark.parametrize("fmt", BLOCK_FORMATS)
@pytest.mark.parametrize(("rows", "cols"), [(5, 256), (16, 512), (33, 768), (512, 256)])
def test_the_blocks_of_a_file_are_packed_as_their_integers_are(
    device: CpuDevice, tmp_path: Path, fmt: str, rows: int, cols: int
) -> None:
    blocks = random_blocks(fmt, rows, cols, spread=0.05, draw=np.random.default_rng(rows))
    down, path = plain(np.zeros((cols, rows))), tmp_path / "packed"
    packed = []
    for source in (
        Weights({"down": down}, path, {"up": blocks}),
        Weights({"down": down, "up": decode(fmt, blocks, cols)}, path),
    ):
        loaded = device.load(up_and_down(fmt, rows, cols), source, no_progress)
        assert loaded.writer is not None
        loaded.writer.wait()
        packed.append(path.read_bytes())
        path.unlink()
        loaded.close()
    assert packed[0] == packed[1]


@pytest.mark.parametrize("fmt", [fmt for fmt in BLOCK_FORMATS if fmt != "mxfp4"])
@pytest.mark.parametrize("scale", [np.inf, np.nan])
def test_blocks_with_a_scale_that_is_not_finite_are_read_as_integers(
    device: CpuDevice, fmt: str, scale: float
) -> None:
    """The source then names the tensor in its error."""
    blocks = random_blocks(fmt, 32, 256, spread=scale, draw=np.random.default_rng(1))
    with pytest.raises(KeyError, match="up"):  # it reads the integers, which are missing
        device.load(
            up_and_down(fmt, 32, 256),
            Weights({"down": plain(np.zeros((256, 32)))}, blocks={"up": blocks}),
            no_progress,
        )


def up_and_down(fmt: str, rows: int, cols: int) -> Program:
    """Return a program with a matrix ``up`` of that shape and format, and a plain matrix ``down``."""
    ops = (
        Linear(HIDDEN, ("x",), (TensorRef("up", (rows, cols)),), (None,)),
        Linear("x", (HIDDEN,), (TensorRef("down", (cols, rows)),), (None,)),
    )
    return middle_program(ops, cols, {"up": fmt}, None)


def test_progress_ends_with_all_bytes(device: CpuDevice) -> None:
    program = middle_program([linear(64, bias=True)], 64, {"w": "bf16"}, None)
    weights = Weights({"w": WeightData("bf16", np.zeros((64, 64), np.uint16)), "b": plain(np.zeros(64))})
    calls: list[tuple[int, int]] = []
    device.load(program, weights, lambda done, total: calls.append((done, total)))
    assert calls == [(8192, 8448), (8448, 8448)]


def test_int8_weights_that_cannot_fit_are_refused_before_they_are_read(
    device: CpuDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights_module, "available_bytes", lambda: 4000)
    with pytest.raises(MemoryBudgetError, match=r"packed weights of 4\.1 KiB do not fit the 3\.9 KiB"):
        device.load(middle_program([linear(64)], 64, {"w": "q8"}, None), Weights({}), no_progress)


def test_pools_that_cannot_fit_are_refused_with_the_arithmetic(device: CpuDevice) -> None:
    group = KVGroup(0, None, 1, 16, (0,))
    weights = Weights({name: plain(np.zeros((16, 32))) for name in ("k", "v")})
    loaded = device.load(middle_program(attention(2, 1, 16), 32, {}, group), weights, no_progress)
    assert device.free_bytes() > 0
    with pytest.raises(
        MemoryBudgetError, match=r"KV pools of [\d.]+ \w+ do not fit the [\d.]+ \w+ that are free"
    ):
        loaded.stage({0: 1 << 40}, StageLimits(1, 1, 1))


def test_step_buffers_are_slots_and_tickets(device: CpuDevice) -> None:
    program = middle_program([linear(64)], 64, {}, None)
    loaded = device.load(program, Weights({"w": plain(np.zeros((64, 64)))}), no_progress)
    limits = StageLimits(5, 1, 1, tickets=3)
    assert loaded.step_bytes(limits) == step_buffer_bytes(program, limits)


def test_a_block_takes_keys_and_values_of_all_its_layers(device: CpuDevice) -> None:
    group = KVGroup(0, None, 2, 12, (0,))
    program = middle_program(attention(4, 2, 12), 48, {}, group)
    weights = Weights({name: plain(np.zeros((24, 48))) for name in ("k", "v")})
    loaded = device.load(program, weights, no_progress)
    padded = math.ceil(12 / 16) * 16
    assert loaded.kv_bytes(0, "f32") == 2 * 2 * 16 * padded * 4
    assert loaded.kv_bytes(0, "f16") == 2 * 2 * 16 * padded * 2


def test_closed_weights_make_no_stage(device: CpuDevice) -> None:
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
    with pytest.raises(ValueError, match="weights of a linear op must have the width of its input"):
        loaded.stage({}, StageLimits(1, 1, 1))


# Inputs that an activation set to zero are skipped: no bit of a result changes.

WIDTH = 1024
PANEL_BYTES = WIDTH * (WIDTH + 2 * WIDTH // 32)
"""The packed size of a matrix of q8_g32."""


def with_zeros(rows: int, share: float, seed: int = 0) -> Float32:
    """Return hidden states that are positive, except for about this share, which ``relu`` zeroes."""
    draw = np.random.default_rng([rows, seed])
    return np.where(draw.random((rows, WIDTH)) < share, -1.0, np.abs(random_rows(rows, WIDTH))).astype(
        np.float32
    )


def program_of_zeros(fmt: str, ops: tuple[Op, ...] = (Activate(HIDDEN, "x", "relu"),)) -> Program:
    product = Linear("x", (HIDDEN,), (TensorRef("w", (WIDTH, WIDTH)),), (TensorRef("b", (WIDTH,)),))
    return middle_program([*ops, product], WIDTH, {"w": fmt}, None)


def weights_of(fmt: str) -> dict[str, WeightData]:
    return {"w": random_integers(fmt, WIDTH, WIDTH), "b": plain(random_rows(1, WIDTH)[0])}


@pytest.mark.parametrize("fmt", INTEGER_FORMATS)
def test_no_bit_changes(device: CpuDevice, fmt: str) -> None:
    weights = weights_of(fmt)
    skipping = open_stage(device, program_of_zeros(fmt), weights)
    dense = open_stage(device, middle_program([linear(WIDTH, bias=True)], WIDTH, {"w": fmt}, None), weights)
    together = -np.abs(random_rows(1, WIDTH))
    together[:, 300:500] = 3.0  # the sums of a group exceed 16 bits
    shares = ((1, 0.0), (1, 0.75), (1, 0.9), (1, 0.999), (1, 1.0), (2, 0.9), (4, 0.95), (5, 0.9), (40, 0.5))
    for x in (together, *(with_zeros(rows, share) for rows, share in shares)):
        np.testing.assert_array_equal(run_rows(skipping, x), run_rows(dense, np.maximum(x, 0)))


@pytest.mark.parametrize(("rows", "is_read"), [(1, False), (4, False), (5, True)])
def test_what_zeros_would_meet_is_not_read(device: CpuDevice, rows: int, is_read: bool) -> None:  # noqa: FBT001 - cases
    """A NaN scale shows whether weights are read, if all inputs of its group are zero."""
    weights = weights_of("q8_g32")
    scales = weights["w"].scales
    assert scales is not None
    scales.coarse[:, 3] = np.nan
    x = with_zeros(rows, 0.98)
    x[:, 96:128] = -1
    out = run_rows(open_stage(device, program_of_zeros("q8_g32"), weights), x)
    assert np.isnan(out).all() if is_read else np.isfinite(out).all()


def test_where_memory_is_short_nothing_is_kept_for_zeros(
    device: CpuDevice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    weights, program, limits = weights_of("q8_g32"), program_of_zeros("q8_g32"), StageLimits(4, 1, 4)
    x = with_zeros(1, 0.9)
    outs, sizes = [], []
    for name, available in (("much", 2 * PANEL_BYTES), ("little", 2 * PANEL_BYTES - 1)):
        monkeypatch.setattr(weights_module, "available_bytes", lambda available=available: available)
        loaded = device.load(program, Weights(weights, tmp_path / name), no_progress)
        outs.append(run_rows(loaded.stage({}, limits), x))
        assert loaded.writer is not None
        loaded.writer.wait()
        sizes.append((tmp_path / name).stat().st_size)
        loaded.close()
    np.testing.assert_array_equal(outs[0], outs[1])
    assert sizes[0] - sizes[1] == pytest.approx(PANEL_BYTES, abs=1 << 16)
    monkeypatch.setattr(weights_module, "available_bytes", lambda: PANEL_BYTES - 1)
    with pytest.raises(MemoryBudgetError, match=f"packed weights of {format_bytes(PANEL_BYTES)} do not fit"):
        device.load(program, Weights({"b": plain(np.zeros(WIDTH))}), no_progress)


@pytest.mark.parametrize(
    ("ops", "num_forms"),
    [
        ((Activate(HIDDEN, "x", "relu"),), 2),
        ((Activate(HIDDEN, "x", "relu2"),), 2),
        ((Activate(HIDDEN, "x", "silu"),), 1),
        # The last op that writes a value counts.
        ((Activate(HIDDEN, "x", "relu"), Activate(HIDDEN, "x", "gelu")), 1),
    ],
)
def test_only_what_meets_zeros_is_packed_twice(
    device: CpuDevice, monkeypatch: pytest.MonkeyPatch, ops: tuple[Op, ...], num_forms: int
) -> None:
    monkeypatch.setattr(weights_module, "available_bytes", lambda: PANEL_BYTES - 1)
    monkeypatch.setattr(_ext.Weights, "drop_strips", lambda _self: None)
    with pytest.raises(
        MemoryBudgetError, match=f"packed weights of {format_bytes(num_forms * PANEL_BYTES)} do not"
    ):
        device.load(
            program_of_zeros("q8_g32", ops),
            Weights({"b": plain(np.zeros(WIDTH))}),
            lambda _done, _total: None,
        )
