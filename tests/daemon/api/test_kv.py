from __future__ import annotations

import msgspec
import pytest

from llmd.api import KV_DTYPES, KVDtype, KVGroup
from llmd.api.kv import kv_block_bytes, kv_head_bytes
from llmd.config import EngineConfig


@pytest.mark.parametrize(
    ("dtype", "head_dim", "num_bytes"),
    [
        ("f32", 12, 48),
        ("f16", 12, 24),
        ("bf16", 12, 24),
        ("int8", 32, 34),
        ("int8", 33, 37),
        ("int8", 128, 136),
        ("int4", 32, 20),
        ("int4", 33, 25),
        ("int4", 128, 80),
    ],
)
def test_a_head_takes_its_elements_and_what_each_group_has(
    dtype: KVDtype, head_dim: int, num_bytes: int
) -> None:
    assert kv_head_bytes(head_dim, dtype) == num_bytes


def test_a_block_covers_keys_and_values_of_all_layers() -> None:
    group = KVGroup(0, None, kv_heads=2, head_dim=3, layers=(4, 7))
    assert kv_block_bytes(group, "f16") == 2 * 2 * 16 * 2 * 3 * 2
    assert kv_block_bytes(group, "f32") == 2 * kv_block_bytes(group, "f16")


def test_every_dtype_can_be_chosen() -> None:
    for dtype in KV_DTYPES:
        assert msgspec.convert({"kv_dtype": dtype}, EngineConfig).kv_dtype == dtype


def test_a_latent_block_has_no_second_array_for_values() -> None:
    group = KVGroup(0, None, kv_heads=1, head_dim=40, layers=(0, 1), kind="latent", value_dim=32)
    assert kv_block_bytes(group, "f16") == 2 * 16 * 40 * 2


def test_values_may_have_another_width_than_keys() -> None:
    group = KVGroup(0, None, kv_heads=3, head_dim=24, layers=(0,), value_dim=16)
    assert kv_block_bytes(group, "f16") == 16 * 3 * (24 + 16) * 2


@pytest.mark.parametrize("dtype", KV_DTYPES)
def test_a_slot_has_the_states_of_all_layers_whatever_the_dtype(dtype: KVDtype) -> None:
    group = KVGroup(0, None, 0, 0, (1, 2, 5), kind="state", state_bytes=100)
    assert kv_block_bytes(group, dtype) == 300
