"""Workloads for the choice of positions, and for attention that is limited to them."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from llmd.api import HIDDEN, Add, Attention, Glu, Indexer, KVDtype, KVGroup, Linear, Op, TensorRef
from llmd.api.kv import LATENT_KV_DTYPES
from llmd.testing.bounds import MAX_NMSE
from llmd.testing.op_cases import long_case, part_case
from llmd.testing.workload import Workload

_WIDTH = 48
_HEADS = 5
_KEY, _VALUE = 37, 16
"""Elements of a latent vector, and of its value."""


def indexer_cases() -> Iterator[Workload]:
    """Yield cases of `Indexer` with attention: most rows have more positions before them than are chosen."""
    for kv_dtype in LATENT_KV_DTYPES:
        yield _case("even", 8, 16, 6, kv_dtype)
        yield _case("odd", 5, 21, 3, kv_dtype)
    yield long_case(_case("long", 26, 32, 40, "f16"))
    yield long_case(_case("long-partitions", 4, 20, 700, "f32"))
    yield _case("all", 4, 16, 500, "f32")
    yield _equal_scores()
    yield _shared()


def _case(name: str, heads: int, head_dim: int, top_k: int, kv_dtype: KVDtype) -> Workload:
    ops = (*_indexer_ops(heads, head_dim, top_k), *_attention_ops())
    return _with_ops(f"{name}-{kv_dtype}", ops, _groups(head_dim), kv_dtype)


def _equal_scores() -> Workload:
    """Return a case in which all scores are 0: the positions are those of a window."""
    *linear, indexer = _indexer_ops(4, 16, 7)
    zero = Glu("index_q", "index_q", "index_q", "relu", threshold=1e6)
    return _with_ops("equal-scores", (*linear, zero, indexer, *_attention_ops()), _groups(16))


def _shared() -> Workload:
    """Return a case in which attention to other latent vectors reads the same chosen positions."""
    groups = _groups(16)
    second = msgspec.structs.replace(groups[0], id=2)
    # Side by side: keys that come from another attention, and are rounded, would differ between devices.
    both = (*_chosen_attention(0, "", "y"), *_chosen_attention(2, "second ", "z"), Add("y", "z", "y"))
    return _with_ops("shared", (*_indexer_ops(6, 16, 5), *both, _back()), (*groups, second), "f16")


def _with_ops(
    name: str, ops: tuple[Op, ...], groups: tuple[KVGroup, ...], kv_dtype: KVDtype = "f32"
) -> Workload:
    case = part_case(f"indexer/{name}", ops, groups=groups, max_nmse=MAX_NMSE["f32"][kv_dtype].part)
    # Weights are exact in float16: a device that rounds them to it would else choose other positions.
    return msgspec.structs.replace(case, format="f16", kv_dtype=kv_dtype, kv_is_tested=True)


def _groups(head_dim: int) -> tuple[KVGroup, KVGroup]:
    return (
        KVGroup(0, None, 1, _KEY, (0,), kind="latent", value_dim=_VALUE),
        KVGroup(1, None, 1, head_dim, (0,), kind="latent"),
    )


def _indexer_ops(heads: int, head_dim: int, top_k: int) -> tuple[Op, ...]:
    widths = {"index_q": heads * head_dim, "index_k": head_dim, "head_weights": heads}
    weights = tuple(TensorRef(name, (width, _WIDTH)) for name, width in widths.items())
    return (
        Linear(HIDDEN, tuple(widths), weights, (None,) * len(widths)),
        Indexer("index_q", "index_k", "head_weights", "chosen", 1, 0, heads, head_dim, top_k),
    )


def _attention_ops() -> tuple[Op, ...]:
    return (*_chosen_attention(0, "", "y"), _back())


def _chosen_attention(group: int, prefix: str, out: str) -> tuple[Op, ...]:
    q, k = (TensorRef(f"{prefix}{n}", (count * _KEY, _WIDTH)) for n, count in (("q", _HEADS), ("k", 1)))
    return (
        Linear(HIDDEN, ("q", "k"), (q, k), (None, None)),
        Attention("q", "k", "k", out, group, 0, _HEADS, 1, _KEY, 0.2, value_dim=_VALUE, chosen="chosen"),
    )


def _back() -> Linear:
    return Linear("y", (HIDDEN,), (TensorRef("back", (_WIDTH, _HEADS * _VALUE)),), (None,))
