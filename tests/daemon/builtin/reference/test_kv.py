from __future__ import annotations

import numpy as np
import pytest

from llmd.api import KV_DTYPES, KVDtype, KVGroup, kv_block_bytes
from llmd.builtin.reference.kv import KVPool
from llmd.builtin.reference.kv_formats import KV_FORMATS

GROUP = KVGroup(0, None, 2, 3, (4, 7))
TABLE = np.array([3, 0], np.int32)


def rows(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, 2, 3)).astype(np.float32)


def test_what_is_written_through_a_table_is_read_in_order() -> None:
    pool = KVPool(GROUP, 4, "f32")
    k, v = rows(20, 1), rows(20, 2)
    pool.write(1, TABLE, np.arange(20, dtype=np.int32), k, v)
    keys, values = pool.read(1, TABLE, 5, 20)
    assert np.array_equal(keys, k[5:])
    assert np.array_equal(values, v[5:])
    assert not pool.read(0, TABLE, 0, 20)[0].any()


@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
def test_keys_and_values_are_rounded_as_their_dtype_has_it(kv_dtype: KVDtype) -> None:
    pool = KVPool(GROUP, 4, kv_dtype)
    k, v = rows(2, 3), rows(2, 6)
    pool.write(0, TABLE, np.arange(2, dtype=np.int32), k, v)
    kept, positions = KV_FORMATS[kv_dtype], np.arange(2)
    for found, x in zip(pool.read(0, TABLE, 0, 2), (k, v), strict=True):
        assert np.array_equal(found, kept.decode(kept.encode(x, positions), GROUP.head_dim, positions))


@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
def test_copying_a_block_takes_all_layers(kv_dtype: KVDtype) -> None:
    pool = KVPool(GROUP, 4, kv_dtype)
    k, v = rows(16, 4), rows(16, 5)
    pool.write(1, TABLE, np.arange(16, dtype=np.int32), k, v)
    pool.copy(3, 2)
    for source, target in zip(*(pool.read(1, np.array([b], np.int32), 0, 16) for b in (3, 2)), strict=True):
        assert source.any()
        assert np.array_equal(source, target)


@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
def test_blocks_are_read_and_written_as_bytes(kv_dtype: KVDtype) -> None:
    first, second = KVPool(GROUP, 4, kv_dtype), KVPool(GROUP, 4, kv_dtype)
    k, v = rows(20, 7), rows(20, 8)
    for layer in range(2):
        first.write(layer, TABLE, np.arange(20, dtype=np.int32), k + layer, v - layer)
    contents = first.read_blocks(TABLE)
    assert contents.shape == (2, kv_block_bytes(GROUP, kv_dtype))
    moved = np.array([1, 2], np.int32)
    second.write_blocks(moved, contents)
    for layer in range(2):
        for there, here in zip(
            second.read(layer, moved, 0, 20), first.read(layer, TABLE, 0, 20), strict=True
        ):
            assert np.array_equal(there, here)
    assert not second.read_blocks(np.array([0, 3], np.int32)).any()


def test_blocks_that_are_not_there_are_refused() -> None:
    pool = KVPool(GROUP, 4, "f16")
    for blocks in ([4], [-1]):
        with pytest.raises(ValueError, match=r"outside 0\.\.3"):
            pool.read_blocks(np.array(blocks, np.int32))
    with pytest.raises(ValueError, match="expected"):
        pool.write_blocks(TABLE, np.zeros((2, 5), np.uint8))
