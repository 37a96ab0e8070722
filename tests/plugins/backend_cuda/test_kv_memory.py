"""Blocks of keys and values: what is stored, copies, and the bytes that leave a device."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.api.kv import KV_DTYPES, KVDtype, kv_block_bytes
from llmd.api.plan import KVGroup
from llmd.api.step import BLOCK_LEN
from llmd.builtin.reference.kv_formats import KV_FORMATS
from llmd_backend_cuda.kv_memory import KV_CODES, KVMemory, block_bytes, padded_dim
from tests.cuda.attention_bench import Bench, attention
from tests.cuda.simt.runtime import SimtRuntime


def _value_at(position: int, dim: int) -> int:
    return (dim // 2 * 4 + position // 4) * 8 + dim % 2 * 4 + position % 4


def _stored(bench: Bench, block: int, head: int) -> np.ndarray:
    """Return the bytes of a block and head."""
    contents = bench.kv.read_blocks(np.array([block], np.int32))[0]
    stored: np.ndarray = contents.reshape(bench.group.kv_heads, -1)[head]
    return stored


@pytest.mark.parametrize("kv_dtype", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("head_dim", [20, 64])
def test_floats_are_stored_as_float16(kv_dtype: KVDtype, head_dim: int) -> None:
    bench = Bench(attention(2, 2, head_dim), kv_dtype=kv_dtype, context_len=48)
    bench.qkv[1][0, 0, 0] = 1e30  # becomes the largest float16
    bench.run(((0, 0, 37),))
    form, width = KV_FORMATS[kv_dtype], padded_dim(head_dim)
    for head, first in ((0, 0), (1, 16), (0, 32)):
        halves = _stored(bench, int(bench.tables[0, first // 16]), head).view(np.float16)
        positions = np.arange(first, min(first + 16, 37))
        for place in range(2):
            x = bench.qkv[1 + place][0, positions].reshape(len(positions), 2, head_dim).clip(-65504, 65504)
            expected = form.decode(form.encode(x, positions), head_dim, positions)[:, head]
            at = (
                np.arange(16)[:, None] * width + np.arange(width)
                if place == 0
                else 16 * width + np.array([[_value_at(p, d) for d in range(width)] for p in range(16)])
            )
            found = halves[at].astype(np.float64)
            expected = expected.clip(-65504, 65504).astype(np.float16)
            np.testing.assert_array_equal(found[: len(positions), :head_dim], expected)
            assert not np.any(found[:, head_dim:])
            assert not np.any(found[len(positions) :])


def test_int8_is_stored_as_specified() -> None:
    head_dim, width = 76, 96
    bench = Bench(attention(1, 1, head_dim), kv_dtype="int8", context_len=32)
    bench.qkv[1][0, 3] = 0
    bench.qkv[2][0, 4, :32] = 1e-9  # the scale rounds to 0
    bench.qkv[2][0, 5, :3] = (127, 0.5, 1.5)  # ties
    bench.run(((0, 0, 16),))
    stored = _stored(bench, int(bench.tables[0, 0]), 0)
    keys, rest = stored[: 16 * width], stored[16 * width :]
    key_scales, rest = rest[: 16 * 4 * 2].view(np.float16).reshape(16, 4), rest[16 * 4 * 2 :]
    values, value_scales = rest[: 16 * width], rest[16 * width :].view(np.float16).reshape(3, 16)
    positions = np.arange(16)
    for place, codes, scales in (
        (1, keys.reshape(16, width), key_scales[:, :3]),
        (2, values[[[_value_at(p, d) for d in range(width)] for p in range(16)]], value_scales.T),
    ):
        x = bench.qkv[place][0, :16].reshape(16, 1, head_dim)
        expected, expected_scales = KV_FORMATS["int8"].encode(x, positions)
        np.testing.assert_array_equal(codes[:, :head_dim].astype(int) - 128, expected[:, 0])
        np.testing.assert_array_equal(scales, expected_scales[:, 0])


def _elements_of_int4(stored: np.ndarray, slabs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the upper 4 bits of codes, their lowest bits, and scales ``[2, 16, slabs]``.

    Those of codes are ``[2, 16, 32 * slabs]``; keys come first, then values.
    """
    codes, words = 256 * slabs, 64 * slabs
    keys, key_words, values, value_words = np.split(stored, np.cumsum([codes, words, codes]))
    upper = np.zeros((2, 16, 32 * slabs), np.uint8)
    of_lane = keys.view(np.uint32).reshape(16, 4, slabs)
    for p, d in np.ndindex(16, 32 * slabs):
        slab, lane, place = d // 32, d % 32 // 8, d % 8
        upper[0, p, d] = of_lane[p, lane, slab] >> (place // 2 * 4 + place % 2 * 16) & 15
        byte = values[d // 16 * 128 + (d % 16 // 2 * 4 + p // 4) * 4 + p % 4]
        upper[1, p, d] = byte >> 4 * (d % 2) & 15
    both = np.stack(
        (key_words.view(np.uint32).reshape(16, slabs), value_words.view(np.uint32).reshape(slabs, 16).T)
    )
    low = np.zeros((2, 16, slabs, 32), np.uint8)
    low[..., 0::2] = both[..., None] >> np.arange(16) & 1
    low[..., 1:16:2] = both[..., None] >> np.arange(16, 24) & 1
    low[..., 17::2] = low[..., 16::2] ^ low[..., 0:16:2] ^ low[..., 1:16:2]
    return upper, low.reshape(upper.shape), (both >> 24).astype(np.uint8)


@pytest.mark.parametrize(
    "head_dim", [76, *(pytest.param(n, marks=pytest.mark.exhaustive) for n in (20, 256))]
)
def test_int4_is_stored_as_specified(head_dim: int) -> None:
    bench = Bench(attention(1, 1, head_dim), kv_dtype="int4", context_len=32)
    bench.qkv[1][0, 3] = 0
    bench.qkv[1][0, 4] *= 1e-6  # scales are not normal numbers
    bench.qkv[1][0, 6, 5] = 200
    bench.qkv[2][0, 5] = np.arange(head_dim)
    bench.run(((0, 0, 16),))
    slabs = padded_dim(head_dim) // 32
    upper, low, scales = _elements_of_int4(_stored(bench, int(bench.tables[0, 0]), 0), slabs)
    positions = np.arange(16)
    for place in range(2):
        x = bench.qkv[1 + place][0, :16].reshape(16, 1, head_dim)
        kept_pairs, bits, expected_scales = KV_FORMATS["int4"].encode(x, positions)
        pairs = kept_pairs.astype(np.uint8)
        halves = np.stack((pairs & 15, pairs >> 4), axis=-1).reshape(16, -1)[:, :head_dim]
        np.testing.assert_array_equal(scales[place], expected_scales[:, 0])
        np.testing.assert_array_equal(upper[place][:, :head_dim], halves)
        of_groups = low[place].reshape(16, slabs, 32)
        kept = np.concatenate((of_groups[..., :16], of_groups[..., 16::2]), axis=-1)
        np.testing.assert_array_equal(np.packbits(kept, axis=-1), bits[:, 0])


def test_large_int4_elements_stay_finite() -> None:
    bench = Bench(attention(1, 1, 32), kv_dtype="int4", context_len=32)
    bench.qkv[1][0, 0, 0], bench.qkv[2][0, 1] = 3e38, -3e38
    bench.qkv[0][0, 1] = 0
    rows = bench.run(((0, 0, 2),))
    assert np.all(np.isfinite(rows))
    assert np.abs(rows).max() > 1e4


@pytest.mark.parametrize("kv_dtype", ["f16", "int8", "int4"])
def test_sizes_have_little_padding(kv_dtype: KVDtype) -> None:
    group = KVGroup(0, None, 8, 128, tuple(range(32)))
    least = kv_block_bytes(group, kv_dtype)
    assert least <= block_bytes(group, kv_dtype) <= 1.001 * least


def test_latent_vectors_are_stored_once() -> None:
    group = KVGroup(0, None, 1, 576, (0, 1), kind="latent", value_dim=512)
    assert block_bytes(group, "f16") == 2 * 16 * 576 * 2
    bench = Bench(attention(2, 1, 40, value_dim=24), context_len=48)
    bench.run(((0, 0, 16),))
    halves = _stored(bench, int(bench.tables[0, 0]), 0).view(np.float16).reshape(16, 64)
    np.testing.assert_array_equal(halves[:, :40], bench.qkv[1][0, :16].astype(np.float16))
    assert not np.any(halves[:, 40:])


def test_unsupported_groups_are_refused() -> None:
    with pytest.raises(ValueError, match="580"):
        block_bytes(KVGroup(0, None, 1, 580, (0,)), "f16")
    with pytest.raises(ValueError, match="keys of 64"):
        block_bytes(KVGroup(0, None, 1, 64, (0,), value_dim=32), "f16")
    with pytest.raises(ValueError, match="latent with keys of 64 elements in int8"):
        block_bytes(KVGroup(0, None, 1, 64, (0,), kind="latent"), "int8")
    assert set(KV_CODES) == set(KV_DTYPES)


def test_only_index_keys_keep_float32() -> None:
    group = KVGroup(0, None, 1, 21, (0, 1), kind="latent")
    halves = 2 * 16 * 32 * 2
    assert block_bytes(group, "f32") == block_bytes(group, "f16") == halves
    assert block_bytes(group, "f16", is_index=True) == block_bytes(group, "bf16", is_index=True) == halves
    assert block_bytes(group, "f32", is_index=True) == 2 * halves


@pytest.mark.parametrize(("stride", "vectors"), [(1, 16), (4, 4), (16, 1), (128, 1)])
def test_a_block_has_the_vectors_of_16_tokens_or_one(stride: int, vectors: int) -> None:
    group = KVGroup(0, None, 1, 21, (0, 1), kind="latent", stride=stride)
    assert block_bytes(group, "f16") == 2 * vectors * 32 * 2
    assert block_bytes(group, "f32", is_index=True) == 2 * vectors * 32 * 4


@pytest.mark.parametrize("stride", [4, 32])
def test_only_vectors_that_are_complete_are_written(stride: int) -> None:
    bench = Bench(attention(2, 1, 12), context_len=96, stride=stride)
    everything = np.arange(bench.kv.num_blocks, dtype=np.int32)
    bench.kv.write_blocks(everything, np.full((len(everything), bench.kv.block_bytes), 0x11, np.uint8))
    bench.run(((0, 27, 35), (1, 0, stride - 1)), padding=5)
    width, of_block = 32, bench.group.block_vectors
    halves = bench.kv.read_blocks(everything).view(np.uint16).reshape(-1, of_block, width)
    written = np.argwhere((halves[..., :12] != 0x1111).any(axis=2)).tolist()
    numbers = [position // stride for position in range(27, 35) if (position + 1) % stride == 0]
    places = [[int(bench.tables[0, number // of_block]), number % of_block] for number in numbers]
    assert sorted(written) == sorted(places)
    for (block, place), number in zip(places, numbers, strict=True):
        row = bench.qkv[1][0, stride * number + stride - 1]
        np.testing.assert_array_equal(halves[block, place, :12].view(np.float16), row.astype(np.float16))


def test_copies_are_in_order() -> None:
    runtime = SimtRuntime()
    group = KVGroup(1, None, 3, 20, (0, 1, 2))
    memory = KVMemory(runtime, group, 6, "f16")
    blocks = np.arange(6, dtype=np.int32)
    assert not np.any(memory.read_blocks(blocks))
    contents = np.random.default_rng(2).integers(0, 256, (6, memory.block_bytes), np.uint8)
    memory.write_blocks(blocks, contents)
    copies = np.array([[1, 0, 1], [0, 5, 4], [1, 1, 2], [1, 3, 0], [1, 2, 5], [1, 4, 4]], np.int32)
    device = runtime.allocate(copies.nbytes), runtime.allocate(4)
    runtime.upload(device[0], 0, copies)
    for count in (0, len(copies)):
        runtime.upload(device[1], 0, np.array([count], np.int32))
        runtime.launch(memory.copy_launch(device[1].pointer, device[0].pointer))
        expected = contents.copy()
        for of_group, source, target in copies[:count].tolist():
            if of_group == 1:
                expected[target] = expected[source]
        np.testing.assert_array_equal(memory.read_blocks(blocks), expected)


def test_blocks_move_to_another_memory() -> None:
    """Attention over blocks that another memory has computed has the same bits."""
    op = attention(4, 2, 20)
    first, second = (Bench(op, context_len=100) for _ in range(2))
    first.run(((0, 0, 40),))
    blocks = first.tables[0, :3]
    second.kv.write_blocks(blocks, first.kv.read_blocks(blocks))
    np.testing.assert_array_equal(second.run(((0, 40, 45),)), first.run(((0, 40, 45),)))
    with pytest.raises(ValueError, match="outside"):
        first.kv.read_blocks(np.array([first.kv.num_blocks], np.int32))
    with pytest.raises(ValueError, match="expected"):
        first.kv.write_blocks(blocks, np.zeros((3, BLOCK_LEN), np.uint8))


def test_padding_rows_and_other_blocks_are_not_written() -> None:
    bench = Bench(attention(2, 1, 12), context_len=64, sequences=2)
    everything = np.arange(bench.kv.num_blocks, dtype=np.int32)
    bench.kv.write_blocks(everything, np.full((len(everything), bench.kv.block_bytes), 0x11, np.uint8))
    bench.run(((0, 18, 20), (1, 40, 41)), padding=5)
    written = {int(bench.tables[0, 1]), int(bench.tables[1, 2])}
    contents = bench.kv.read_blocks(everything)
    changed = set(np.flatnonzero(np.any(contents != 0x11, axis=1)).tolist())
    assert changed == written
    keys = contents[int(bench.tables[0, 1]), : 16 * 32 * 2].view(np.uint16).reshape(16, 32)
    assert set(np.flatnonzero(np.any(keys[:, :12] != 0x1111, axis=1)).tolist()) == {2, 3}
