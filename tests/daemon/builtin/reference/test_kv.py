from __future__ import annotations

import numpy as np

from llmd.api import KVGroup
from llmd.builtin.reference.kv import KVPool, block_bytes

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


def test_f16_rounds_to_nearest() -> None:
    pool = KVPool(GROUP, 4, "f16")
    k = rows(2, 3)
    pool.write(0, TABLE, np.arange(2, dtype=np.int32), k, k)
    assert np.array_equal(pool.read(0, TABLE, 0, 2)[0], k.astype(np.float16).astype(np.float64))


def test_copying_a_block_takes_all_layers() -> None:
    pool = KVPool(GROUP, 4, "f32")
    k, v = rows(16, 4), rows(16, 5)
    pool.write(1, TABLE, np.arange(16, dtype=np.int32), k, v)
    pool.copy(3, 2)
    assert np.array_equal(pool.read(1, np.array([2], np.int32), 0, 16)[1], v)


def test_block_bytes_cover_keys_and_values_of_all_layers() -> None:
    assert block_bytes(GROUP, "f16") == 2 * 2 * 16 * 2 * 3 * 2
    assert block_bytes(GROUP, "f32") == 2 * block_bytes(GROUP, "f16")
