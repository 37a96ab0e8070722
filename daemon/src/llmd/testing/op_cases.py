"""Workloads for each op and each of its options: parts with little more than that op."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from llmd.api import (
    HIDDEN,
    Activate,
    Add,
    Attention,
    Embed,
    EmbedPosition,
    EmbedTokenType,
    EncoderAttention,
    Glu,
    Head,
    KVGroup,
    Linear,
    ModelPlan,
    Multiply,
    Norm,
    Op,
    Part,
    Rope,
    RopeTable,
    TensorRef,
)
from llmd.api.activations import ACTIVATIONS
from llmd.api.ops import TABLE_OPS
from llmd.testing.bounds import MAX_NMSE
from llmd.testing.workload import Workload

_WIDTH = 48
_VOCAB = 131
_CONTEXT = 256
_LONG = 1056
"""Longer than two of the chunks into which kernels split keys and values, so that threads share a row."""
_BEGUN = _LONG - 20


def op_cases() -> Iterator[Workload]:
    """Yield every op case."""
    yield from _embed_and_norm()
    yield from _linear()
    yield from _rope_and_glu()
    yield from _attention()
    yield from _encoder_attention()
    yield from _head()


def _embed_and_norm() -> Iterator[Workload]:
    for fmt in ("f32", "f16", "bf16"):
        table = TensorRef("table", (_VOCAB, _WIDTH))
        yield embed_case(f"embed/{fmt}", Embed(HIDDEN, table, scale=2.5), fmt)
        ranged = TensorRef("positions", (_CONTEXT + 2, _WIDTH), rows=(2, _CONTEXT + 2))
        yield embed_case(f"embed_position/{fmt}", EmbedPosition(HIDDEN, ranged), fmt)
        types = EmbedTokenType(HIDDEN, TensorRef("types", (2, _WIDTH)))
        yield embed_case(f"embed_token_type/{fmt}", types, fmt)
        mixed = msgspec.structs.replace(
            embed_case(f"embed_token_type/{fmt}-mixed", types, fmt), token_types=True
        )
        yield mixed
        wide = TensorRef("wide", (_VOCAB, 3 * _WIDTH))
        middle = Embed(HIDDEN, wide, columns=(_WIDTH - 5, 2 * _WIDTH - 5))
        yield embed_case(f"embed/{fmt}-columns", middle, fmt)
    gain, bias = _vector("gain"), _vector("bias")
    piece = TensorRef("piece", (_WIDTH // 4,))
    norms = {
        "rms": Norm(HIDDEN, HIDDEN, gain, 1e-5),
        "rms-offset": Norm(HIDDEN, HIDDEN, gain, 1e-2, offset=1.0),
        "rms-plain": Norm(HIDDEN, HIDDEN, None, 1e-6),
        "rms-heads": Norm(HIDDEN, HIDDEN, piece, 1e-6, heads=4),
        "rms-own": Norm(HIDDEN, HIDDEN, gain, 1e-6, heads=3, own_weights=True),
        "layer": Norm(HIDDEN, HIDDEN, gain, 1e-5, "layer"),
        "layer-own": Norm(HIDDEN, HIDDEN, gain, 1e-5, "layer", heads=4, bias=bias, own_weights=True),
        "layer-bias": Norm(HIDDEN, HIDDEN, gain, 1e-5, "layer", bias=bias),
    }
    for name, op in norms.items():
        yield part_case(f"norm/{name}", (op,))
    yield part_case("add", (Norm(HIDDEN, "x", None, 1e-6), Add(HIDDEN, "x", HIDDEN, scale=0.3)))
    yield part_case("multiply", (Multiply(HIDDEN, HIDDEN, TensorRef("factor", (1,))),))


def _linear() -> Iterator[Workload]:
    for fmt in ("f32", "f16", "bf16"):
        wide = TensorRef("wide", (100, _WIDTH))
        back = TensorRef("back", (_WIDTH, 100))
        ops = (
            Linear(HIDDEN, ("a",), (wide,), (TensorRef("wide.bias", (100,)),)),
            Linear("a", (HIDDEN,), (back,), (None,)),
        )
        yield part_case(f"linear/{fmt}", ops, fmt, max_nmse=1e-9)
        square = TensorRef("square", (3 * _WIDTH, _WIDTH))
        cuts = tuple(
            TensorRef(square.name, square.shape, rows=(i * _WIDTH, (i + 1) * _WIDTH)) for i in range(2)
        )
        fused = (Linear(HIDDEN, ("a", "b"), cuts, (None, _vector("b.bias"))), Add("a", "b", HIDDEN))
        yield part_case(f"linear/{fmt}-rows", fused, fmt, max_nmse=1e-9)
        big = TensorRef("big", (320, 320))
        yield part_case(
            f"linear/{fmt}-320", (Linear(HIDDEN, (HIDDEN,), (big,), (None,)),), fmt, max_nmse=1e-9, width=320
        )


def _rope_and_glu() -> Iterator[Workload]:
    for name, dim, interleaved, factor in (
        ("half", 12, False, 1.0),
        ("interleaved", 12, True, 1.0),
        ("partial", 8, False, 1.0),
        ("factor", 12, False, 1.19),
    ):
        table = RopeTable(tuple(10.0 ** (-i / 3) for i in range(dim // 2)), factor)
        yield part_case(f"rope/{name}", (Rope(HIDDEN, HIDDEN, 4, 12, table, interleaved),))
    for activation in ACTIVATIONS:
        yield part_case(
            f"glu/{activation}", (Norm(HIDDEN, "up", None, 1e-6), Glu(HIDDEN, "up", HIDDEN, activation))
        )
        yield part_case(f"activate/{activation}", (Activate(HIDDEN, HIDDEN, activation),))
    yield part_case(
        "glu/relu-threshold", (Norm(HIDDEN, "up", None, 1e-6), Glu(HIDDEN, "up", HIDDEN, "relu", 0.4))
    )
    yield part_case(
        "glu/limit", (Norm(HIDDEN, "up", None, 1e-6), Glu(HIDDEN, "up", HIDDEN, "silu", limit=0.6))
    )


def _attention() -> Iterator[Workload]:
    sinks = TensorRef("sinks", (4,))
    for name, kv_heads, head_dim, window, softcap, of_sinks in (
        ("mha", 4, 12, None, None, None),
        ("gqa", 2, 12, None, None, None),
        ("mqa", 1, 12, None, 20.0, None),
        ("window", 2, 12, 17, None, None),
        ("window-1", 2, 12, 1, 5.0, None),
        ("wide-head", 2, 40, None, None, None),
        ("sinks", 2, 12, None, None, sinks),
        ("sinks-window", 2, 12, 3, 5.0, sinks),
    ):
        for kv_dtype, bounds in MAX_NMSE["f32"].items():
            group = KVGroup(0, window, kv_heads, head_dim, (0,))
            width = 4 * head_dim
            kv = tuple(TensorRef(n, (kv_heads * head_dim, width)) for n in ("k", "v"))
            ops = (
                Linear(HIDDEN, ("k", "v"), kv, (None, None)),
                Attention(HIDDEN, "k", "v", HIDDEN, 0, 0, 4, kv_heads, head_dim, 0.4, softcap, of_sinks),
            )
            case = part_case(
                f"attention/{name}-{kv_dtype}", ops, groups=(group,), max_nmse=bounds.part, width=width
            )
            case = msgspec.structs.replace(case, kv_dtype=kv_dtype, kv_is_tested=True)
            yield case
            if name in {"gqa", "sinks"}:
                long = "long" if name == "gqa" else f"long-{name}"
                yield long_case(msgspec.structs.replace(case, name=f"attention/{long}-{kv_dtype}"))
    yield from _shared_keys()


def _shared_keys() -> Iterator[Workload]:
    """Yield attention with queries of its own over the keys and values that another op has written."""
    kv = tuple(TensorRef(n, (2 * 12, _WIDTH)) for n in ("k", "v"))
    ops = (
        Linear(HIDDEN, ("k", "v"), kv, (None, None)),
        Attention(HIDDEN, "k", "v", "y", 0, 0, 4, 2, 12, 0.4),
        Add(HIDDEN, "y", "q"),
        Attention("q", None, None, HIDDEN, 0, 0, 4, 2, 12, 0.4),
    )
    group = KVGroup(0, 17, 2, 12, (0,))
    for kv_dtype, bounds in MAX_NMSE["f32"].items():
        case = part_case(f"attention/shared-{kv_dtype}", ops, groups=(group,), max_nmse=bounds.part)
        yield msgspec.structs.replace(case, kv_dtype=kv_dtype, kv_is_tested=True)


def long_case(case: Workload) -> Workload:
    """Return the case with a context of many blocks, all but the end of which is in the KV cache from the
    start.
    """
    plan = msgspec.structs.replace(case.plan, context_len=_LONG, max_context_len=_LONG)
    return msgspec.structs.replace(case, plan=plan, tokens=_tokens((_LONG, 5)), begun=_BEGUN)


def _encoder_attention() -> Iterator[Workload]:
    for heads, head_dim in ((4, 12), (1, 64), (3, 20)):
        width = heads * head_dim
        kv = tuple(TensorRef(n, (width, width)) for n in ("k", "v"))
        ops = (
            Linear(HIDDEN, ("k", "v"), kv, (None, None)),
            EncoderAttention(HIDDEN, "k", "v", HIDDEN, heads, head_dim, 0.4),
        )
        yield part_case(f"encoder_attention/{heads}x{head_dim}", ops, max_nmse=1e-9, width=width)


def _head() -> Iterator[Workload]:
    weight, bias = TensorRef("head", (_VOCAB, _WIDTH)), TensorRef("head.bias", (_VOCAB,))
    heads = {
        "plain": Head(HIDDEN, weight),
        "scale-softcap-bias": Head(HIDDEN, weight, scale=0.25, softcap=4.0, bias=bias),
    }
    for name, op in heads.items():
        for edits, masks in ((False, False), (True, False), (True, True)):
            label = f"head/{name}{'-edits' if edits else ''}{'-masks' if masks else ''}"
            yield head_case(label, op, edits=edits, masks=masks)
    for fmt in ("f16", "bf16"):
        yield head_case(f"head/{fmt}", heads["plain"], fmt)
    yield msgspec.structs.replace(head_case("head/draws", heads["plain"], edits=True), draws=True)


def head_case(
    name: str, op: Head, fmt: str = "f32", *, edits: bool = False, masks: bool = False, width: int = _WIDTH
) -> Workload:
    """Return a case of only a head, over hidden states of ``width``."""
    plan = _plan((Part("other", "ffn", 0, ()), Part("head", "head", None, (op,))), (), width)
    return Workload(name, plan, 1, 2, _tokens(), fmt, edits=edits, masks=masks, max_nmse=1e-9)


def embed_case(
    name: str, op: Embed | EmbedPosition | EmbedTokenType, fmt: str, *, width: int = _WIDTH
) -> Workload:
    """Return a case of only a lookup, in a table with rows of ``width``."""
    plan = _plan((Part("embed", "embed", None, (op,)), Part("other", "ffn", 0, ())), (), width)
    return Workload(name, plan, 0, 1, _tokens(), fmt, integer_ops=TABLE_OPS)


def part_case(
    name: str,
    ops: tuple[Op, ...],
    fmt: str = "f32",
    *,
    groups: tuple[KVGroup, ...] = (),
    max_nmse: float = 1e-10,
    width: int = _WIDTH,
) -> Workload:
    """Return a case of ops between hidden states of ``width``."""
    parts = (Part("other", "ffn", 0, ()), Part("tested", "mixer", 0, ops), Part("after", "ffn", 0, ()))
    return Workload(name, _plan(parts, groups, width), 1, 2, _tokens(), fmt, max_nmse=max_nmse)


def _plan(parts: tuple[Part, ...], groups: tuple[KVGroup, ...], width: int = _WIDTH) -> ModelPlan:
    return ModelPlan("op", width, _VOCAB, _CONTEXT, _CONTEXT, groups, parts)


def _vector(name: str) -> TensorRef:
    return TensorRef(name, (_WIDTH,))


def _tokens(lengths: tuple[int, ...] = (41, 1, 18)) -> tuple[tuple[int, ...], ...]:
    """Return random sequences, by default three: one longer than two blocks, one of a single token."""
    draw = np.random.default_rng(5)
    return tuple(tuple(draw.integers(0, _VOCAB, n).tolist()) for n in lengths)
