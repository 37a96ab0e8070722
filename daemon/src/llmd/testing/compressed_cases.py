"""Workloads for compressed attention: vectors that stand for several tokens, and attention in two parts."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from llmd.api import (
    HIDDEN,
    Attention,
    Compress,
    Indexer,
    KVDtype,
    KVGroup,
    Linear,
    MergeAttention,
    Norm,
    Op,
    Rope,
    RopeTable,
    TensorRef,
)
from llmd.api.kv import LATENT_KV_DTYPES
from llmd.testing.bounds import MAX_NMSE
from llmd.testing.op_cases import long_case, part_case
from llmd.testing.workload import Workload

_WIDTH = 48
_CONTEXT = 256


class _Sizes(msgspec.Struct, frozen=True):
    """The sizes of a case."""

    stride: int
    overlap: bool
    heads: int
    dim: int
    window: int


def compressed_cases() -> Iterator[Workload]:
    """Yield cases of `Compress`, `MergeAttention`, and the options of other ops that go with them."""
    for kv_dtype in LATENT_KV_DTYPES:
        yield _compress(f"overlap-{kv_dtype}", _Sizes(4, overlap=True, heads=1, dim=20, window=8), kv_dtype)
        yield _compress(f"apart-{kv_dtype}", _Sizes(16, overlap=False, heads=1, dim=13, window=8), kv_dtype)
        yield _whole(f"all-{kv_dtype}", _Sizes(4, overlap=True, heads=5, dim=16, window=9), kv_dtype)
        yield _whole(f"few-{kv_dtype}", _Sizes(32, overlap=False, heads=3, dim=24, window=5), kv_dtype)
        yield _chosen(f"chosen-{kv_dtype}", _Sizes(4, overlap=True, heads=4, dim=16, window=7), kv_dtype)
    yield _whole("each", _Sizes(1, overlap=False, heads=4, dim=16, window=3), "f32")
    yield long_case(_whole("long", _Sizes(4, overlap=True, heads=4, dim=32, window=128), "f16"))
    yield long_case(_chosen("long-chosen", _Sizes(2, overlap=True, heads=4, dim=32, window=17), "f32"))
    yield _rope()


def _compress(name: str, sizes: _Sizes, kv_dtype: KVDtype) -> Workload:
    """Return a case in which the vectors are the output."""
    ops = (*_vectors(sizes), Linear("vector", (HIDDEN,), (TensorRef("back", (_WIDTH, sizes.dim)),), (None,)))
    return _case(f"compress/{name}", ops, (_parts(sizes),), kv_dtype)


def _whole(name: str, sizes: _Sizes, kv_dtype: KVDtype) -> Workload:
    """Return a case with attention to a window and to all vectors."""
    vectors = KVGroup(1, None, 1, sizes.dim, (0,), kind="latent", stride=sizes.stride)
    ops = (*_vectors(sizes), *_both(sizes, chosen=None))
    return _case(f"merge_attention/{name}", ops, (_parts(sizes), vectors, _near(sizes)), kv_dtype)


def _chosen(name: str, sizes: _Sizes, kv_dtype: KVDtype) -> Workload:
    """Return a case with attention to a window and to the vectors that an indexer chooses."""
    heads, dim = 6, 14
    vectors = KVGroup(1, None, 1, sizes.dim, (0,), kind="latent", stride=sizes.stride)
    index = KVGroup(3, None, 1, dim, (0,), kind="latent", stride=sizes.stride)
    widths = {"index_q": heads * dim, "index_k": dim, "head_weights": heads}
    weights = tuple(TensorRef(name, (width, _WIDTH)) for name, width in widths.items())
    choice = (
        Linear(HIDDEN, tuple(widths), weights, (None,) * len(widths)),
        Indexer("index_q", "index_k", "head_weights", "chosen", 3, 0, heads, dim, 5),
    )
    ops = (*_vectors(sizes), *choice, *_both(sizes, chosen="chosen"))
    groups = (_parts(sizes), vectors, _near(sizes), index)
    # Weights are exact in float16: a device that rounds them to it would else choose other vectors.
    case = _case(f"merge_attention/{name}", ops, groups, kv_dtype)
    return msgspec.structs.replace(case, format="f16")


def _rope() -> Workload:
    table = RopeTable(tuple(10.0 ** (-i / 3) for i in range(6)))
    return part_case("rope/stride", (Rope(HIDDEN, HIDDEN, 4, 12, table, stride=4),))


def _case(name: str, ops: tuple[Op, ...], groups: tuple[KVGroup, ...], kv_dtype: KVDtype) -> Workload:
    case = part_case(name, ops, groups=groups, max_nmse=MAX_NMSE["f32"][kv_dtype].part)
    return msgspec.structs.replace(case, kv_dtype=kv_dtype, kv_is_tested=True)


def _parts(sizes: _Sizes) -> KVGroup:
    series = 1 + sizes.overlap
    return KVGroup(0, series * sizes.stride, 1, 2 * series * sizes.dim, (0,), kind="latent")


def _near(sizes: _Sizes) -> KVGroup:
    return KVGroup(2, sizes.window, 1, sizes.dim, (0,), kind="latent")


def _vectors(sizes: _Sizes) -> Iterator[Op]:
    width = sizes.dim * (1 + sizes.overlap)
    weights = tuple(TensorRef(name, (width, _WIDTH)) for name in ("part", "gate"))
    yield Linear(HIDDEN, ("part", "gate"), weights, (None, None))
    bias = TensorRef("bias", (sizes.stride * width,))
    yield Compress("part", "gate", "vector", bias, 0, 0, sizes.dim, sizes.stride, sizes.overlap)


def _both(sizes: _Sizes, chosen: str | None) -> Iterator[Op]:
    """Yield the ops of attention to a window, with sinks, and to vectors."""
    heads, dim = sizes.heads, sizes.dim
    weights = (TensorRef("q", (heads * dim, _WIDTH)), TensorRef("kv", (dim, _WIDTH)))
    yield Linear(HIDDEN, ("q", "kv"), weights, (None, None))
    yield Norm("vector", "vector", None, 1e-5)
    sinks = TensorRef("sinks", (heads,))
    near = Attention("q", "kv", "kv", "near", 2, 0, heads, 1, dim, 0.2, sinks=sinks, sums="near_sums")
    yield near
    yield Attention("q", "vector", "vector", "far", 1, 0, heads, 1, dim, 0.2, chosen=chosen, sums="far_sums")
    yield MergeAttention("near", "near_sums", "far", "far_sums", "y", heads)
    yield Linear("y", (HIDDEN,), (TensorRef("back", (_WIDTH, heads * dim)),), (None,))
