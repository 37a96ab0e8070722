"""Types of the KV cache, and their sizes."""

from __future__ import annotations

from typing import Literal, get_args

from llmd.api.plan import KVGroup

KVDtype = Literal["f32", "f16", "bf16", "int8", "int4"]
"""Element type of keys and values. ``f16`` and ``bf16`` round to nearest even. ``int8`` and ``int4`` are
codes with a scale for each `KV_SCALE_GROUP` elements; ``int4`` codes index `KV_BOOK`, and heads are rotated
first (docs/ops.md)."""

KV_DTYPES: tuple[KVDtype, ...] = get_args(KVDtype)
"""All values of `KVDtype`."""

LATENT_KV_DTYPES: tuple[KVDtype, ...] = ("f32", "f16", "bf16")
"""The types that groups of kind ``latent`` can have."""

KV_SCALE_GROUP = 32
"""Consecutive elements of a head that share a scale (float16 for ``int8``, 8 bits for ``int4``); the last
group of a head may be shorter."""

KV_BOOK = (
    *(-120, -107, -94, -83, -73, -64, -55, -47, -40, -33, -27, -22, -16, -11, -6, -1),
    *(4, 9, 14, 19, 24, 30, 37, 44, 51, 59, 68, 78, 89, 100, 113, 127),
)
"""Values of the ``int4`` codes, in 64ths of the scale: 0.6 v + 0.4 v³ of 127, v = (code - 15.25) / 15.75."""

_CODE_BITS: dict[KVDtype, int] = {"f32": 32, "f16": 16, "bf16": 16, "int8": 8, "int4": 4}
# int4: a scale, and the lowest bits of 24 elements.
_GROUP_BYTES: dict[KVDtype, int] = {"int8": 2, "int4": 4}


def kv_head_bytes(head_dim: int, dtype: KVDtype) -> int:
    """Return the bytes of the keys (or values) of one token and head, without padding of the device."""
    groups = -(-head_dim // KV_SCALE_GROUP)
    return -(-head_dim * _CODE_BITS[dtype] // 8) + groups * _GROUP_BYTES.get(dtype, 0)


def kv_block_bytes(group: KVGroup, dtype: KVDtype) -> int:
    """Return the bytes of one block of a group, for all its layers and without padding.

    A block of a ``state`` group is a slot; ``dtype`` does not apply to it.
    """
    if group.kind == "state":
        return len(group.layers) * group.state_bytes
    head = kv_head_bytes(group.key_dim, dtype)
    if group.kind == "paged":
        head += kv_head_bytes(group.value_dim, dtype)
    return len(group.layers) * group.block_vectors * group.kv_heads * head
