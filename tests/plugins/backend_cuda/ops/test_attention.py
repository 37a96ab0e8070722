"""Paged attention against the reference, and the same bits however a sequence is cut into steps."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from llmd.api.kv import KVDtype
from llmd.api.ops import Attention
from llmd_backend_cuda import attention_plan
from llmd_backend_cuda.ops import attention as attention_ops
from tests.cuda.attention_bench import Bench, Float32, attention, nmse, rope

LENGTH = 300
CUTS = (0, 1, 3, 16, 17, 40, 129, 295, 296, LENGTH)
"""Where a sequence is cut into steps; the whole of it is one step with whole tiles."""

SHAPES: Sequence[tuple[str, Attention, int | None, KVDtype]] = (
    ("mha-12", attention(4, 4, 12, scale=0.4), None, "f16"),
    ("gqa3-20-softcap", attention(6, 2, 20, softcap=5.0), None, "f16"),
    ("gqa4-64", attention(8, 2, 64), None, "f16"),
    ("gqa8-128", attention(8, 1, 128), None, "f16"),
    ("gqa7-80", attention(7, 1, 80), None, "f16"),
    ("mqa32-12", attention(32, 1, 12), None, "f16"),
    ("mqa24-64", attention(24, 1, 64), None, "f16"),
    ("mha-256", attention(1, 1, 256), None, "f16"),
    ("mha-460", attention(1, 1, 460), None, "f16"),
    ("mha-512", attention(4, 2, 512), None, "f16"),
    ("odd-7", attention(2, 1, 7), None, "f16"),
    ("window-17", attention(4, 2, 12, scale=0.4), 17, "f16"),
    ("window-1-softcap", attention(4, 2, 12, scale=0.4, softcap=5.0), 1, "f16"),
    ("window-150", attention(4, 2, 40), 150, "f16"),
    ("sinks", attention(6, 2, 20, has_sinks=True), None, "f16"),
    ("sinks-mqa24", attention(24, 1, 64, has_sinks=True), 33, "int4"),
    ("bf16", attention(4, 2, 20), None, "bf16"),
    ("f32", attention(4, 2, 20), None, "f32"),
    ("latent-28-20", attention(4, 1, 28, scale=0.4, value_dim=20), None, "f16"),
    ("latent-37-16-mqa24", attention(24, 1, 37, value_dim=16), None, "bf16"),
    ("latent-150-90", attention(5, 1, 150, value_dim=90), None, "f32"),
    ("latent-576-512", attention(16, 1, 576, value_dim=512), None, "f16"),
    ("int8-20", attention(4, 2, 20), None, "int8"),
    ("int8-128", attention(4, 1, 128), None, "int8"),
    ("int8-window", attention(4, 2, 76), 33, "int8"),
    ("int4-20", attention(4, 2, 20), None, "int4"),
    ("int4-80-window", attention(4, 2, 80, softcap=5.0), 33, "int4"),
    ("int4-128", attention(4, 1, 128), None, "int4"),
    ("int4-256", attention(1, 1, 256), None, "int4"),
    ("int8-512", attention(1, 1, 512), 33, "int8"),
    ("int4-512", attention(1, 1, 512, softcap=5.0), None, "int4"),
)
EXHAUSTIVE = {
    "mqa24-64",
    "sinks-mqa24",
    "mha-256",
    "mha-512",
    "window-150",
    "int4-80-window",
    "int4-256",
    "int8-512",
    "int4-512",
    "latent-37-16-mqa24",
    "latent-576-512",
}
"""Shapes that `make test` leaves out."""
BOUNDS = {"f16": 1e-7, "bf16": 1e-7, "f32": 1e-6, "int8": 1e-6, "int4": 1e-6}
"""Of the NMSE; `docs/ops.md` allows 3e-6, 5e-5 for bf16 and int8, and 3e-3 for int4."""


def _same_bits(found: Float32, expected: Float32) -> None:
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize(
    ("op", "window", "kv_dtype"),
    [
        pytest.param(*s[1:], id=s[0], marks=pytest.mark.exhaustive if s[0] in EXHAUSTIVE else ())
        for s in SHAPES
    ],
)
def test_attention(op: Attention, window: int | None, kv_dtype: KVDtype) -> None:
    def bench() -> Bench:
        return Bench(op, window=window, kv_dtype=kv_dtype, context_len=310, max_rows=350)

    together, cut = bench(), bench()
    step = ((0, 0, LENGTH), (1, 0, 37))
    rows = together.run(step, padding=2)
    assert nmse(rows, together.expected(step)) < BOUNDS[kv_dtype]
    more = ((1, 37, 39), (0, LENGTH, LENGTH + 1))
    assert nmse(together.run(more), together.expected(more)) < BOUNDS[kv_dtype]
    for first, end in itertools.pairwise(CUTS):
        _same_bits(cut.run(((0, first, end),)), rows[first:end])


@pytest.mark.parametrize("order", ["forward", "reverse", 3])
@pytest.mark.parametrize("scratch_bytes", [1 << 20, 0])
def test_neither_the_order_of_blocks_nor_splitting_changes_bits(
    order: str | int, scratch_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    op = attention(8, 2, 64)
    plain = Bench(op, context_len=600, max_rows=600)
    rows = plain.run(((0, 0, 590), (1, 0, 9)))
    monkeypatch.setattr(attention_plan, "_SCRATCH_BYTES", scratch_bytes)
    other = Bench(op, context_len=600, max_rows=600, order=order)
    _same_bits(other.run(((0, 0, 590), (1, 0, 9))), rows)
    _same_bits(other.run(((1, 8, 9), (0, 585, 590))), np.concatenate([rows[-1:], rows[585:590]]))


@pytest.mark.parametrize("window", [None, 300])
def test_long_spans(window: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Later spans have several chunks; their sums are added in `out`, or by the last block of a tile."""
    monkeypatch.setattr(attention_plan, "SHORT_SPANS", 2)
    monkeypatch.setattr(attention_ops, "SHORT_SPANS", 2)
    monkeypatch.setattr(attention_plan, "_LONGEST_SHORT_WINDOW", 0)
    op = attention(4, 1, 20)
    bench = Bench(op, window=window, context_len=2400, max_rows=2400, sequences=1)
    rows = bench.run(((0, 0, 2350),))
    for first in (0, 127, 255, 256, 767, 768, 769, 1281, 2335):
        step = ((0, first, first + 3),)
        found = bench.run(step)
        _same_bits(found, rows[first : first + 3])
        assert nmse(found, bench.expected(step)) < 1e-6
    monkeypatch.setattr(attention_plan, "_SCRATCH_BYTES", 0)
    _same_bits(bench.run(((0, 2340, 2350),)), rows[2340:2350])


STRIDES: Sequence[tuple[str, Attention, int, KVDtype]] = (
    ("4-mha-20", attention(4, 1, 20), 4, "f16"),
    ("2-mqa24-37", attention(24, 1, 37, has_sinks=True), 2, "bf16"),
    ("8-mha-150", attention(3, 1, 150), 8, "f32"),
    ("16-mha-20", attention(5, 1, 20, value_dim=13), 16, "f16"),
    ("32-mqa40-64", attention(40, 1, 64), 32, "f16"),
    ("4-mqa16-512", attention(16, 1, 512), 4, "f16"),
)


@pytest.mark.parametrize(("op", "stride", "kv_dtype"), [s[1:] for s in STRIDES], ids=[s[0] for s in STRIDES])
def test_vectors_that_stand_for_several_positions(op: Attention, stride: int, kv_dtype: KVDtype) -> None:
    """The first rows see none: they are 0, also if there are sinks."""
    op = msgspec.structs.replace(op, sums="sums")

    def bench() -> Bench:
        return Bench(op, kv_dtype=kv_dtype, context_len=310, max_rows=350, stride=stride)

    together, cut = bench(), bench()
    step = ((0, 0, LENGTH), (1, 0, 37))
    rows = together.run(step, padding=2)
    sums = together.read(6, len(rows), op.heads)
    expected, expected_sums = together.expected_both(step)
    assert nmse(rows, expected) < BOUNDS[kv_dtype]
    np.testing.assert_allclose(sums, expected_sums, rtol=1e-5, atol=2e-3)
    assert not rows[: stride - 1].any()
    more = ((1, 37, 39), (0, LENGTH, LENGTH + 1))
    assert nmse(together.run(more), together.expected(more)) < BOUNDS[kv_dtype]
    for first, end in itertools.pairwise(CUTS):
        _same_bits(cut.run(((0, first, end),)), rows[first:end])
        _same_bits(cut.read(6, end - first, op.heads), sums[first:end])


def test_spans_of_vectors_are_added_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    op = msgspec.structs.replace(attention(4, 1, 20), sums="sums")
    bench = Bench(op, context_len=1300, max_rows=1300, sequences=1, stride=2)
    rows = bench.run(((0, 0, 1290),))
    sums = bench.read(6, 1290, 4)
    expected, expected_sums = bench.expected_both(((0, 0, 1290),))
    assert nmse(rows, expected) < 1e-6
    np.testing.assert_allclose(sums, expected_sums, rtol=1e-5, atol=2e-3)
    for scratch_bytes in (1 << 20, 0):
        monkeypatch.setattr(attention_plan, "_SCRATCH_BYTES", scratch_bytes)
        for first in (0, 254, 255, 256, 1279):
            _same_bits(bench.run(((0, first, first + 3),)), rows[first : first + 3])
            _same_bits(bench.read(6, 3, 4), sums[first : first + 3])


@pytest.mark.parametrize("window", [None, 33])
def test_sums_of_attention(window: int | None) -> None:
    """A sink that outweighs everything is the whole sum."""
    op = msgspec.structs.replace(attention(6, 2, 20, softcap=5.0, has_sinks=True), sums="sums")
    bench = Bench(op, window=window, max_rows=350)
    step = ((0, 0, 300),)
    bench.run(step)
    expected = bench.expected_both(step)[1]
    np.testing.assert_allclose(bench.read(6, 300, 6), expected, rtol=1e-5, atol=2e-3)
    sinks = np.array([1e4, -1e4, 0, 1, 300, 80], np.float32)
    bench.runtime.upload(bench.context.vectors[0], 0, sinks)  # type: ignore[arg-type]
    bench.run(step)
    found = bench.read(6, 300, 6)
    assert (found[:, 0] == sinks[0]).all()
    sinks[0], bench.sinks = 0, sinks
    expected = bench.expected_both(step)[1]
    np.testing.assert_allclose(found[:, 1:], expected[:, 1:], rtol=1e-5, atol=2e-3)


def test_sinks_far_from_all_scores() -> None:
    """Heads with sinks that outweigh everything have zeros, and those without weight all of their values."""
    op = attention(2, 1, 20, has_sinks=True)
    bench, plain = Bench(op, context_len=100), Bench(attention(2, 1, 20), context_len=100)
    bench.runtime.upload(bench.context.vectors[0], 0, np.array([1e4, -1e4], np.float32))  # type: ignore[arg-type]
    found, without = (one.run(((0, 0, 40),)).reshape(40, 2, 20) for one in (bench, plain))
    assert not found[:, 0].any()
    _same_bits(found[:, 1], without[:, 1])


@pytest.mark.parametrize("kv_dtype", ["f16", "int8", "int4"])
def test_what_other_sequences_left_in_blocks_does_not_matter(kv_dtype: KVDtype) -> None:
    op = attention(4, 2, 40)
    clean, used = (Bench(op, kv_dtype=kv_dtype, context_len=200) for _ in range(2))
    used.qkv[1][1], used.qkv[2][1] = 3e38, -3e38
    used.run(((1, 0, 50),))
    used.tables[0, :4] = used.tables[1, :4]
    for step in (((0, 0, 21),), ((0, 21, 22),), ((0, 22, 35),)):
        _same_bits(used.run(step), clean.run(step))


@pytest.mark.parametrize("kv_dtype", ["f16", "int8", "int4"])
@pytest.mark.parametrize(("style", "pairs"), [("half", 16), ("interleaved", 6)])
def test_queries_and_keys_are_rotated_in_the_launch_that_stores(
    kv_dtype: KVDtype, style: str, pairs: int
) -> None:
    op = attention(5, 1, 40)
    ropes = (rope(5, 40, 12), rope(1, 40, pairs, interleaved=style == "interleaved", factor=1.2))
    bench = Bench(op, ropes=ropes, kv_dtype=kv_dtype, context_len=100, layers=3)
    step = ((0, 0, 37), (1, 0, 18))
    rows = bench.run(step, padding=1)
    assert nmse(rows, bench.expected(step)) < BOUNDS[kv_dtype]
    _same_bits(bench.run(((1, 17, 18), (0, 36, 37))), rows[[54, 36]])


@pytest.mark.parametrize(
    ("kept", "kv_dtype", "launches"), [(5, "int4", 1), (4, "f16", 3), (3, "f16", 1), (3, "int4", 3)]
)
def test_rotated_rows_that_are_read_later_are_written(kept: int, kv_dtype: KVDtype, launches: int) -> None:
    """With int4, the launch that stores keys leaves queries elsewhere."""
    ropes = (rope(2, 20, 10), rope(1, 20, 10))
    bench = Bench(attention(2, 1, 20), ropes=ropes, kv_dtype=kv_dtype, kept=(kept, 5))
    names = [launch.kernel.spec.name for launch in bench.launches(4)]
    before = names[: names.index("store_kv") + 1]
    assert before == ["rope_rows", "rope_rows", "store_kv"][-launches:]
    step = ((0, 0, 4),)
    assert nmse(bench.run(step), bench.expected(step)) < 1e-6


@pytest.mark.parametrize("kv_dtype", ["f16", "int4"])
def test_keys_of_another_layer_are_read_but_not_written(kv_dtype: KVDtype) -> None:
    """What follows the step in the blocks is kept, and so are keys that differ from those of the step."""
    bench = Bench(attention(4, 2, 20), kv_dtype=kv_dtype, context_len=100)
    step = ((0, 0, 37), (1, 0, 18))
    rows = bench.run(step, padding=1)
    bench.op = msgspec.structs.replace(bench.op, k=None, v=None)
    names = [launch.kernel.spec.name for launch in bench.launches(4)]
    assert names == (["store_kv"] if kv_dtype == "int4" else []) + ["attention_split"]
    blocks = np.arange(bench.kv.num_blocks, dtype=np.int32)
    before = bench.kv.read_blocks(blocks)
    bench.qkv[1:] = [np.zeros_like(values) for values in bench.qkv[1:]]
    _same_bits(bench.run(step, padding=1), rows)
    np.testing.assert_array_equal(bench.kv.read_blocks(blocks), before)


def test_a_negative_scale_is_refused() -> None:
    with pytest.raises(ValueError, match="scale"):
        Bench(attention(1, 1, 8, scale=-1.0))
