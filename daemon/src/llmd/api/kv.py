"""How keys and values are kept: the dtypes of KV caches, and the bytes that they come to."""

from __future__ import annotations

from typing import Literal, get_args

from llmd.api.plan import KVGroup
from llmd.api.step import BLOCK_LEN

KVDtype = Literal["f32", "f16", "bf16", "int8"]
"""``f16`` and ``bf16`` round to nearest even; ``int8`` has codes with a scale for each `INT8_KV_GROUP` elements."""

KV_DTYPES: tuple[KVDtype, ...] = get_args(KVDtype)

INT8_KV_GROUP = 32
"""Consecutive elements of a head that share a float16 scale in ``int8``; the last group of a head may be short."""

_ITEM_BYTES = {"f32": 4, "f16": 2, "bf16": 2, "int8": 1}
_SCALE_BYTES = 2


def kv_head_bytes(head_dim: int, dtype: KVDtype) -> int:
    """Bytes of the keys, or of the values, of one token and head, without what a device pads them with."""
    scales = -(-head_dim // INT8_KV_GROUP) * _SCALE_BYTES if dtype == "int8" else 0
    return head_dim * _ITEM_BYTES[dtype] + scales


def kv_block_bytes(group: KVGroup, dtype: KVDtype) -> int:
    """Bytes of one block of a group: keys and values of all its layers, without padding."""
    return 2 * len(group.layers) * BLOCK_LEN * group.kv_heads * kv_head_bytes(group.head_dim, dtype)
