"""Blocks of keys and values, and slots of states, in regions of each layer."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.api import KVDtype, KVGroup, kv_block_bytes
from llmd.api.kv import KV_DTYPES
from llmd_backend_vulkan.kv_memory import KV_CODES, KVPool, block_bytes, head_words
from llmd_backend_vulkan.memory import Arena

GROUP = KVGroup(1, None, 2, 128, (0, 3))
STATES = KVGroup(0, None, 0, 0, (1, 2, 5), kind="state", state_bytes=112)


@pytest.mark.parametrize("kv_dtype", ["f32", "f16", "bf16"])
def test_plain_blocks_have_no_padding(kv_dtype: KVDtype) -> None:
    assert block_bytes(GROUP, kv_dtype) == kv_block_bytes(GROUP, kv_dtype)


def test_int8_has_a_scale_for_32_elements() -> None:
    assert block_bytes(GROUP, "int8") == kv_block_bytes(GROUP, "int8")
    assert [head_words(size, "int8") for size in (12, 40, 64)] == [4, 11, 17]


def test_int4_has_a_word_for_32_elements_besides_the_upper_bits() -> None:
    assert block_bytes(GROUP, "int4") == kv_block_bytes(GROUP, "int4")
    assert [head_words(size, "int4") for size in (12, 40, 64)] == [3, 7, 10]


def test_a_slot_has_the_states_of_all_layers() -> None:
    assert block_bytes(STATES, "f16") == 3 * 112


def test_latent_vectors_are_stored_once() -> None:
    group = KVGroup(0, None, 1, 576, (0, 1), kind="latent", value_dim=512)
    assert block_bytes(group, "f16") == kv_block_bytes(group, "f16") == 2 * 16 * 576 * 2


def test_vectors_that_stand_for_several_tokens_take_less() -> None:
    few, one = (KVGroup(0, None, 1, 512, (0, 1), kind="latent", stride=stride) for stride in (4, 128))
    assert block_bytes(few, "f16") == kv_block_bytes(few, "f16") == 2 * 4 * 512 * 2
    assert block_bytes(one, "f32") == kv_block_bytes(one, "f32") == 2 * 512 * 4


def test_a_block_has_a_power_of_two_of_vectors(arena: Arena) -> None:
    def bits(stride: int) -> int:
        return KVPool(arena, KVGroup(0, None, 1, 4, (0,), kind="latent", stride=stride), 1, "f32").vector_bits

    assert [bits(stride) for stride in (1, 2, 4, 8, 16, 128)] == [4, 3, 2, 1, 0, 0]


def test_unsupported_groups_are_refused() -> None:
    assert set(KV_CODES) == set(KV_DTYPES)
    with pytest.raises(ValueError, match="values of 32"):
        block_bytes(KVGroup(0, None, 1, 64, (0,), value_dim=32), "f16")


def test_blocks_are_read_and_written(arena: Arena) -> None:
    pool = KVPool(arena, GROUP, 5, "f16")
    size = block_bytes(GROUP, "f16")
    contents = np.random.default_rng(2).integers(0, 256, (2, size), np.uint8)
    pool.write_blocks(np.array([4, 1], np.int32), contents)
    assert np.array_equal(pool.read_blocks(np.array([1, 4], np.int32)), contents[::-1])
    assert not pool.read_blocks(np.array([0, 2, 3], np.int32)).any()


def test_blocks_are_copied_in_order(arena: Arena) -> None:
    pool = KVPool(arena, GROUP, 4, "f32")
    first = np.random.default_rng(3).integers(0, 256, (1, block_bytes(GROUP, "f32")), np.uint8)
    pool.write_blocks(np.array([0], np.int32), first)
    copies = np.array([[1, 0, 1], [9, 3, 1], [1, 1, 2], [1, 3, 0]], np.int32)
    listed = arena.runtime.host(copies.size)
    listed.view[:] = copies.reshape(-1).view(np.uint32)
    arena.runtime.run([pool.copies(listed, len(copies))])
    now = pool.read_blocks(np.arange(4, dtype=np.int32))
    assert not now[0].any()
    assert np.array_equal(now[1], first[0])
    assert np.array_equal(now[2], first[0])


@pytest.mark.parametrize(("group", "what"), [(GROUP, "blocks"), (STATES, "slots")])
def test_blocks_that_do_not_exist_are_refused(arena: Arena, group: KVGroup, what: str) -> None:
    pool = KVPool(arena, group, 2, "f16")
    with pytest.raises(ValueError, match=rf"{what} \[2\] are outside 0..1"):
        pool.read_blocks(np.array([2], np.int32))
    with pytest.raises(ValueError, match="expected uint8"):
        pool.write_blocks(np.array([0], np.int32), np.zeros((1, 3), np.uint8))
