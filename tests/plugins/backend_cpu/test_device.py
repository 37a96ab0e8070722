"""The kernels of every instruction set compute what docs/ops.md says, the same for any batch."""

from __future__ import annotations

import mmap
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np
import pytest

from llmd.api import (
    HIDDEN,
    INTEGER_FORMATS,
    KV_DTYPES,
    Add,
    DeviceError,
    Embed,
    EncoderAttention,
    Head,
    HostHidden,
    KVDtype,
    KVGroup,
    Linear,
    ModelPlan,
    Norm,
    Op,
    Part,
    TensorRef,
    WeightData,
)
from llmd.builtin.reference.kv_formats import KV_FORMATS
from llmd.models.lowering import lower
from llmd.testing.conformance import cases_for, check_case, reference_outcome
from llmd_backend_cpu import _ext
from llmd_backend_cpu.device import CpuDevice, describe
from tests.conformance.kinds import of_each_kind
from tests.plugins.backend_cpu.workbench import (
    FLOAT_FORMATS,
    attention,
    dequantized,
    head_program,
    in_format,
    linear,
    middle_program,
    one_sequence,
    open_stage,
    plain,
    quantized_rows,
    random_integers,
    random_rows,
    run_rows,
    select,
)

CASES = {case.name: case for case in cases_for(describe())}
KINDS = {case.name for case in of_each_kind(CASES.values())}
Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
ALWAYS_HUGE = HUGE_PAGES.exists() and "[always]" in HUGE_PAGES.read_text()


def nmse(mine: np.ndarray, expected: np.ndarray) -> float:
    wide = expected.astype(np.float64)
    return float(np.sum((mine.astype(np.float64) - wide) ** 2) / np.sum(wide**2))


def integer_linear(x: np.ndarray, weight: WeightData) -> Array:
    """Compute the formula of integer weights in float64, with activations quantised in float32."""
    form = INTEGER_FORMATS[weight.format]
    q, scales = quantized_rows(x, form.activation_group(x.shape[1]), form.activation_limit)
    product: Array = (q * scales) @ dequantized(weight).T
    return product


def test_more_threads_than_the_system_starts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("Resource temporarily unavailable")

    monkeypatch.setattr(_ext, "Device", refuse)
    with pytest.raises(DeviceError, match="refused to start 5 threads: Resource"):
        CpuDevice(threads=5)


@pytest.mark.parametrize(
    "case", [pytest.param(name, marks=() if name in KINDS else pytest.mark.exhaustive) for name in CASES]
)
def test_conforms_with_every_other_instruction_set(case: str) -> None:
    """The best instruction set of the machine is tested by tests/conformance."""
    expected = reference_outcome(CASES[case])
    for isa in _ext.available_isas()[1:]:
        with closing(CpuDevice(isa, threads=2)) as device:
            results = list(check_case(device, CASES[case], expected))
        assert [result for result in results if result.problem] == [], isa
        assert len(results) > 1, "accuracy and exactness were both checked"


@pytest.mark.parametrize("fmt", INTEGER_FORMATS)
def test_integer_sums_are_exact(device: CpuDevice, fmt: str) -> None:
    """Short rows, short last groups, partly filled panels; few rows, one tile and several."""
    for width in (36, 328):
        weight = random_integers(fmt, width, width, plain_scales=True)
        x = np.random.default_rng(width).integers(-127, 128, (19, width)).astype(np.float32)
        x[:, ::32] = 127  # makes the scale of each activation group 1
        x[1], x[2] = 127, -127  # the largest sums of products that are added in 16 bits
        expected = x @ dequantized(weight).T
        assert np.abs(expected).max() < 1 << 24
        stage = open_stage(device, middle_program([linear(width)], width, {"w": fmt}, None), {"w": weight})
        for rows in (1, 2, 3, 19):
            np.testing.assert_array_equal(run_rows(stage, x[:rows]), expected[:rows])


@pytest.mark.parametrize("fmt", INTEGER_FORMATS)
def test_integer_linear_equals_the_formula(device: CpuDevice, fmt: str) -> None:
    width = 600
    weight = random_integers(fmt, width, width)
    x = random_rows(5, width, 2)
    x[:, 3] *= 30
    x[4, : width // 2] = 0
    stage = open_stage(device, middle_program([linear(width)], width, {"w": fmt}, None), {"w": weight})
    assert nmse(run_rows(stage, x), integer_linear(x, weight)) < 1e-12


@pytest.mark.parametrize("rows", [1, 7, 40])
def test_fp8_beside_integers_leaves_their_sums_alone(device: CpuDevice, rows: int) -> None:
    """Activations of one op are float32 for one weight, and int8 for the other."""
    width = 160
    refs = TensorRef("w", (width, width)), TensorRef("v", (width, width))
    both = (Linear(HIDDEN, ("a", "b"), refs, (None, None)), Add("a", "b", HIDDEN))
    weights = {"w": in_format(random_rows(width, width), "fp8"), "v": random_integers("q8", width, width)}
    x = random_rows(rows, width, 2)
    together = open_stage(device, middle_program(both, width, {"w": "fp8", "v": "q8"}, None), weights)
    alone = [
        run_rows(
            open_stage(device, middle_program([linear(width)], width, {"w": fmt}, None), {"w": weight}), x
        )
        for fmt, weight in (("fp8", weights["w"]), ("q8", weights["v"]))
    ]
    np.testing.assert_array_equal(run_rows(together, x), alone[0] + alone[1])


@pytest.mark.parametrize(
    "fmt", [*FLOAT_FORMATS, "q8", "q8_wide", "q4", "q3_g64_sym", "mxfp4", "q2_k", "q5_k", "q6_k"]
)
def test_linear_gives_the_same_bits_for_any_number_of_rows_and_threads(device: CpuDevice, fmt: str) -> None:
    width = 136
    weights = {"w": in_format(random_rows(width, width, 1), fmt), "b": plain(random_rows(1, width)[0])}
    program = middle_program([linear(width, bias=True)], width, {"w": fmt}, None)
    x = random_rows(256, width, 2)
    stage = open_stage(device, program, weights)
    alone = np.concatenate([run_rows(stage, x[i : i + 1]) for i in range(24)])
    assert nmse(alone, run_rows(stage, x)[:24]) == 0
    for rows in range(2, 18):
        np.testing.assert_array_equal(run_rows(stage, x[:rows]), alone[:rows])
    for threads in (1, 3, 4):
        other = CpuDevice(device.info.description.split(", ")[-2], threads)
        np.testing.assert_array_equal(run_rows(open_stage(other, program, weights), x)[:24], alone)


@pytest.mark.parametrize("fmt", ["f32", "f16", "bf16"])
def test_plain_linear_is_exact_to_float32(device: CpuDevice, fmt: str) -> None:
    """Any width, more rows than are multiplied at a time, and activations of very different magnitude."""
    for width, rows in ((1, 2), (33, 17), (203, 3), (203, 40), (800, 1), (130, 1100)):
        weight = in_format(random_rows(width, width, 1), fmt)
        exact = weight.data.astype(np.float64)
        if fmt == "bf16":
            exact = (weight.data.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        x = np.ldexp(random_rows(rows, width, 2), np.arange(width) % 7 - 3)
        program = middle_program([linear(width)], width, {"w": fmt}, None)
        stage = open_stage(device, program, {"w": weight}, rows=rows)
        assert nmse(run_rows(stage, x), x.astype(np.float64) @ exact.T) < 2e-13


@pytest.mark.parametrize("fmt", ["f32", "f16", "bf16"])
def test_an_infinite_activation_is_felt_by_its_row_alone(device: CpuDevice, fmt: str) -> None:
    width = 40
    weight = in_format(random_rows(width, width, 1), fmt)
    stage = open_stage(device, middle_program([linear(width)], width, {"w": fmt}, None), {"w": weight})
    for rows in (3, 20):
        x = random_rows(rows, width, 2)
        clean = run_rows(stage, x)
        x[1, 7] = np.inf
        mixed = run_rows(stage, x)
        np.testing.assert_array_equal(np.delete(mixed, 1, axis=0), np.delete(clean, 1, axis=0))
        np.testing.assert_array_equal(mixed[1], np.copysign(np.inf, random_rows(width, width, 1)[:, 7]))


def test_half_precision_weights_are_widened_exactly_down_to_subnormals(device: CpuDevice) -> None:
    values = np.array([0x0001, 0x83FF, 0x0400, 0x7BFF, 0xBC00, 0x0000, 0x8000, 0x2C2C], np.uint16)
    table = WeightData("f16", np.ascontiguousarray(np.tile(values.view(np.float16), (300, 3))))
    parts = (
        Part("embed", "embed", None, (Embed(HIDDEN, TensorRef("w", (300, 24))),)),
        Part("x", "ffn", 0, ()),
    )
    plan = ModelPlan("test", 24, 300, 64, 64, (), parts)
    program = lower(plan, 0, 1, format_of=lambda _kind, _ref: "f16")
    stage = open_stage(device, program, {"w": table})
    ticket = stage.submit(one_sequence(2), None, None)
    np.testing.assert_array_equal(stage.hidden(ticket).host()[1], table.data[0].astype(np.float32))


@pytest.mark.parametrize("fmt", INTEGER_FORMATS)
def test_rows_of_a_packed_table_are_to_the_last_bit_what_codes_stand_for(device: CpuDevice, fmt: str) -> None:
    """Short rows, several short last groups, and a partly filled last panel."""
    vocab = 37
    for width in (36, 328, 512):
        op = Embed(HIDDEN, TensorRef("w", (vocab, width)), scale=3.0)
        parts = (Part("embed", "embed", None, (op,)), Part("x", "ffn", 0, ()))
        plan = ModelPlan("test", width, vocab, 64, 64, (), parts)
        table = random_integers(fmt, vocab, width)
        stage = open_stage(device, lower(plan, 0, 1, format_of=lambda _kind, _ref: fmt), {"w": table})
        step = one_sequence(vocab)
        step.token_ids[:] = np.random.default_rng(1).permutation(vocab)
        ticket = stage.submit(step, None, None)
        expected = dequantized(table).astype(np.float32)[step.token_ids] * np.float32(3)
        np.testing.assert_array_equal(stage.hidden(ticket).host(), expected)


def attend_in_float64(
    x: np.ndarray, k: np.ndarray, v: np.ndarray, heads: int, kv_heads: int, window: int | None
) -> Array:
    wide = x.astype(np.float64)
    dim = x.shape[1] // heads
    keys, values = ((wide @ w.astype(np.float64).T).reshape(len(x), kv_heads, dim) for w in (k, v))
    out = np.zeros((len(x), heads, dim))
    for row in range(len(x)):
        first = 0 if window is None else max(0, row - window + 1)
        for head in range(heads):
            kv = head // (heads // kv_heads)
            query = wide[row].reshape(heads, dim)[head]
            scores = keys[first : row + 1, kv] @ query * dim**-0.5
            weights = np.exp(scores - scores.max())
            out[row, head] = weights @ values[first : row + 1, kv] / weights.sum()
    return out.reshape(len(x), -1)


@pytest.mark.parametrize(
    ("heads", "kv_heads", "window"), [(3, 3, None), (8, 2, 40), (9, 1, None), (4, 2, 600)]
)
def test_attention_over_several_partitions_equals_the_formula(
    device: CpuDevice, heads: int, kv_heads: int, window: int | None
) -> None:
    dim, rows = 20, 1100
    width = heads * dim
    k, v = random_rows(kv_heads * dim, width, 1) * np.float32(0.3), random_rows(kv_heads * dim, width, 2)
    group = KVGroup(0, window, kv_heads, dim, (0,))
    program = middle_program(attention(heads, kv_heads, dim), width, {}, group)
    x = random_rows(rows, width, 3)
    expected = attend_in_float64(x, k, v, heads, kv_heads, window)
    blocks = np.random.default_rng(4).permutation(80)[:70]
    weights = {"k": plain(k), "v": plain(v)}
    kinds: dict[KVDtype, float] = {"f32": 1e-10, "f16": 1e-5, "bf16": 1e-4, "int8": 1e-3, "int4": 5e-2}
    for kv_dtype, bound in kinds.items():
        stage = open_stage(device, program, weights, rows=rows, blocks=80, kv_dtype=kv_dtype)
        whole = run_rows(stage, x, one_sequence(rows, 0, blocks.tolist()))
        assert nmse(whole, expected) < bound
        again = open_stage(device, program, weights, rows=rows, blocks=80, kv_dtype=kv_dtype)
        chunks = [(0, 700), (700, 701), (701, 1099), (1099, 1100)]
        pieces = [run_rows(again, x[a:b], one_sequence(b - a, a, blocks[::-1].tolist())) for a, b in chunks]
        np.testing.assert_array_equal(np.concatenate(pieces), whole)


@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
def test_keys_and_values_are_kept_as_the_reference_keeps_them(device: CpuDevice, kv_dtype: KVDtype) -> None:
    dim = 72
    # With a window of one position, the result is the row's own value, whatever its score.
    program = middle_program(attention(1, 1, dim), dim, {}, KVGroup(0, 1, 1, dim, (0,)))
    weights = {"k": plain(np.eye(dim)), "v": plain(np.eye(dim))}
    x = random_rows(20, dim, 1)
    x[1] *= np.float32(1e-6)
    x[2, :32] = 0
    x[3, 40] = 3000
    x[4] = np.linspace(-127, 127, dim, dtype=np.float32)
    x[5, 64:] = 2.0**-26
    x[6, ::2] = np.array([1 + 2.0**-9 * n for n in range(dim // 2)])  # ties of bf16
    stage = open_stage(device, program, weights, rows=20, blocks=2, kv_dtype=kv_dtype)
    kept = KV_FORMATS[kv_dtype]
    positions = np.arange(len(x))
    expected = kept.decode(kept.encode(x[:, None], positions), dim, positions)[:, 0].astype(np.float32)
    mine = run_rows(stage, x, one_sequence(20, 0, [1, 0]))
    # Rotating back sums over whole heads.
    most = 1e-6 * np.abs(expected).max(axis=1, keepdims=True) if kv_dtype == "int4" else 0.0
    assert (np.abs(mine - expected) <= most).all()


@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
def test_what_a_block_held_before_reaches_nobody(device: CpuDevice, kv_dtype: KVDtype) -> None:
    group = KVGroup(0, None, 1, 16, (0,))
    program = middle_program(attention(2, 1, 16), 32, {}, group)
    weights = {name: plain(random_rows(16, 32, seed)) for seed, name in enumerate(("k", "v"))}
    x = random_rows(5, 32)
    clean = run_rows(
        open_stage(device, program, weights, blocks=1, kv_dtype=kv_dtype), x, one_sequence(5, 0, [0])
    )
    stage = open_stage(device, program, weights, blocks=1, kv_dtype=kv_dtype)
    run_rows(stage, np.full((16, 32), np.nan, np.float32), one_sequence(16, 0, [0]))
    np.testing.assert_array_equal(run_rows(stage, x, one_sequence(5, 0, [0])), clean)


def test_what_a_text_left_behind_reaches_no_text_of_a_later_step(device: CpuDevice) -> None:
    program = middle_program(
        (EncoderAttention(HIDDEN, HIDDEN, HIDDEN, HIDDEN, 2, 10, 0.3),), 20, {}, group=None
    )
    texts = [random_rows(rows, 20, rows) for rows in (3, 17, 40)]
    step = msgspec.structs.replace(one_sequence(60), row_offsets=np.array([0, 3, 20, 60], np.int32))
    step.positions[:] = np.concatenate([np.arange(len(text)) for text in texts])
    stage = open_stage(device, program, {})
    run_rows(stage, np.full((300, 20), np.nan, np.float32))
    together = run_rows(stage, np.concatenate(texts), step)
    alone = [run_rows(open_stage(device, program, {}), text) for text in texts]
    np.testing.assert_array_equal(together, np.concatenate(alone))


@pytest.mark.parametrize("fmt", ["f32", "bf16", "q8"])
def test_a_row_of_nan_leaves_other_rows_alone(device: CpuDevice, fmt: str) -> None:
    width = 64
    weights = {"w": in_format(random_rows(width, width), fmt), "g": plain(random_rows(1, width)[0])}
    ops: tuple[Op, ...] = (Norm(HIDDEN, HIDDEN, TensorRef("g", (width,)), 1e-6), linear(width))
    stage = open_stage(device, middle_program(ops, width, {"w": fmt}, None), weights)
    x = random_rows(3, width)
    clean = run_rows(stage, x)
    x[1] = np.nan
    mixed = run_rows(stage, x)
    np.testing.assert_array_equal(mixed[[0, 2]], clean[[0, 2]])
    assert fmt == "q8" or np.isnan(mixed[1]).all(), "NaN becomes zero in int8"


@pytest.mark.parametrize("fmt", ["f32", "bf16"])
def test_the_caller_keeps_its_subnormal_numbers(device: CpuDevice, fmt: str) -> None:
    weights = {"w": in_format(np.eye(8), fmt)}
    stage = open_stage(device, middle_program([linear(8)], 8, {"w": fmt}, None), weights)
    x = np.full((1, 8), 1e-40, np.float32)
    assert not run_rows(stage, x).any(), "kernels take them as zero"
    assert np.float32(1e-40) * np.float32(1) != 0


def test_refuses_an_instruction_set_that_the_machine_lacks() -> None:
    with pytest.raises(DeviceError, match="cannot run the instruction set 'mmx'"):
        CpuDevice(isa="mmx")


def test_refuses_formats_by_name(device: CpuDevice) -> None:
    (refusal,) = device.check(middle_program([linear(64)], 64, {"w": "q7"}, None))
    assert refusal.what == "format q7"
    assert device.check(middle_program([linear(64)], 64, {"w": "q8"}, None)) == []


def test_memory_is_read_at_some_rate() -> None:
    assert CpuDevice().read_rate(0.05) > 0


def test_describes_processor_instruction_set_and_threads() -> None:
    description = CpuDevice(isa="generic", threads=1).info.description
    assert description.endswith(", generic, 1 thread")


@pytest.mark.parametrize("temperature", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("offset", [0.0, -300.0, 40.0])
def test_a_long_row_is_described_as_in_double_precision(
    device: CpuDevice, temperature: float, offset: float
) -> None:
    """Vocabularies are summed in pieces; logits far from zero must not lose precision."""
    vocab = 10_007
    program = head_program(Head(HIDDEN, TensorRef("w", (vocab, 2))), 2, vocab)
    logits = 3.0 * np.random.default_rng(4).standard_normal(vocab) + offset
    stage = open_stage(device, program, {"w": plain(np.stack([logits, logits], axis=1))})
    masks = np.random.default_rng(5).integers(0, 1 << 32, (1, -(-vocab // 32)), dtype=np.uint32)
    masks[:, 2::3] = 0
    hidden = HostHidden(np.eye(2, dtype=np.float32))
    ticket = stage.submit(one_sequence(2), hidden, select(2, temperature=temperature, masked=[1]))
    stage.apply_masks(ticket, masks)
    result = stage.wait(ticket, 1.0)
    bits = np.unpackbits(masks.view(np.uint8), bitorder="little")[:vocab] == 1
    for row, allowed in enumerate((np.ones(vocab, np.bool_), bits)):
        z = stage.raw_rows(ticket, np.array([row], np.int32))[0][allowed].astype(np.float64)
        x = z / temperature
        lse = np.log(np.exp(x - x.max()).sum()) + x.max()
        entropy = -(np.exp(x - lse) * (x - lse)).sum()
        assert result.num_allowed[row] == len(z)
        np.testing.assert_allclose(result.edited_logsumexp[row], lse, rtol=1e-6)
        np.testing.assert_allclose(result.edited_entropy[row], entropy, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(result.edited_deviation[row], z.std(), rtol=1e-5)


@pytest.mark.skipif(ALWAYS_HUGE, reason="the system gives huge pages to whoever asks for none")
def test_a_block_takes_no_more_memory_than_it_has(device: CpuDevice) -> None:
    """The first token touches a block of each layer: clearing a huge page for each would delay it."""
    program = middle_program(attention(2, 2, 64), 128, {}, KVGroup(0, None, 2, 64, (0,)))
    weights = {name: plain(random_rows(128, 128, seed)) for seed, name in enumerate(("k", "v"))}
    with closing(open_stage(device, program, weights, blocks=4096)) as stage:
        contents = stage.read_blocks(0, np.arange(1, dtype=np.int32))
        far_apart = np.arange(0, 4096, 256, dtype=np.int32)
        before = resident_bytes()
        stage.write_blocks(0, far_apart, np.repeat(contents, len(far_apart), axis=0))
        assert resident_bytes() - before < 16 * len(far_apart) * contents.nbytes


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE
