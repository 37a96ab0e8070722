from __future__ import annotations

import msgspec

from llmd.api import (
    OP_KINDS,
    Activate,
    Add,
    Attention,
    CollapseStreams,
    Compress,
    Embed,
    EmbedPosition,
    EmbedTokenType,
    EncoderAttention,
    Experts,
    Gate,
    Glu,
    Head,
    HeadLinear,
    Indexer,
    Join,
    Linear,
    MergeAttention,
    MixStreams,
    Multiply,
    Norm,
    Recurrence,
    Rope,
    RopeTable,
    Router,
    StreamWeights,
    TensorRef,
    TokenShift,
)

A, B = TensorRef("a", (4, 4)), TensorRef("b", (4,))
STACK = TensorRef("e", (3, 4, 4), is_stack=True)


def test_kinds_are_numbered_in_an_order_that_never_changes() -> None:
    decoders = ("embed", "norm", "linear", "rope", "attention", "glu", "add", "head")
    encoders = ("embed_position", "embed_token_type", "encoder_attention", "activate")
    hybrids = ("recurrence",)
    mixtures = ("router", "experts", "gate")
    states = ("gated_delta", "state_space")
    latent = ("head_linear", "join")
    others = ("multiply", "token_shift", "generalized_delta", "adapt", "indexer")
    compressed = ("compress", "merge_attention", "stream_weights", "collapse_streams", "mix_streams")
    assert decoders + encoders + hybrids + mixtures + states + latent + others + compressed == OP_KINDS


def test_every_op_tells_what_it_reads_and_writes() -> None:
    ops = [
        Embed("h", A),
        Norm("x", "y", B, 1e-5),
        Linear("x", ("q", "k"), (A, A), (B, None)),
        Rope("q", "r", 1, 4, RopeTable((1.0, 0.1))),
        Attention("q", "k", "v", "o", 0, 0, 1, 1, 4, 0.5),
        Glu("g", "u", "y", "silu"),
        Add("a", "b", "c"),
        Head("x", A),
        EmbedPosition("p", A),
        EmbedTokenType("t", A),
        EncoderAttention("q", "k", "v", "o", 1, 4, 0.5),
        Activate("x", "y", "gelu"),
        Recurrence("x", "y", B, 0, 0),
        Router("x", "r", A, 2),
        Experts("x", "r", "y", None, STACK, STACK, "silu", 2),
        Gate("x", "g", "y"),
        HeadLinear("x", "y", STACK),
        Join("a", "b", "y", 2),
        Multiply("x", "y", B),
        TokenShift("x", ("a", "b"), (B, B), 0, 0),
        Attention("q", None, None, "o", 0, 0, 1, 1, 4, 0.5),
        Indexer("q", "k", "w", "c", 0, 0, 2, 4, 8),
        Attention("q", None, None, "o", 0, 0, 1, 1, 4, 0.5, chosen="c"),
        Attention("q", "k", "k", "o", 0, 0, 1, 1, 4, 0.5, sums="s"),
        Router("x", "r", A, 2, given="e"),
        Compress("x", "g", "y", A, 0, 0, 2, 4),
        MergeAttention("a", "s", "b", "t", "y", 2),
        StreamWeights("x", "w", A, B, B, 2, 1e-6, 1e-6, 3),
        CollapseStreams("x", "w", "y", 2),
        MixStreams("x", "y", "w", "z", 2),
    ]
    assert [(op.kind, op.reads, op.writes) for op in ops] == [
        ("embed", (), ("h",)),
        ("norm", ("x",), ("y",)),
        ("linear", ("x",), ("q", "k")),
        ("rope", ("q",), ("r",)),
        ("attention", ("q", "k", "v"), ("o",)),
        ("glu", ("g", "u"), ("y",)),
        ("add", ("a", "b"), ("c",)),
        ("head", ("x",), ()),
        ("embed_position", (), ("p",)),
        ("embed_token_type", (), ("t",)),
        ("encoder_attention", ("q", "k", "v"), ("o",)),
        ("activate", ("x",), ("y",)),
        ("recurrence", ("x",), ("y",)),
        ("router", ("x",), ("r",)),
        ("experts", ("x", "r"), ("y",)),
        ("gate", ("x", "g"), ("y",)),
        ("head_linear", ("x",), ("y",)),
        ("join", ("a", "b"), ("y",)),
        ("multiply", ("x",), ("y",)),
        ("token_shift", ("x",), ("a", "b")),
        ("attention", ("q",), ("o",)),
        ("indexer", ("q", "k", "w"), ("c",)),
        ("attention", ("q", "c"), ("o",)),
        ("attention", ("q", "k", "k"), ("o", "s")),
        ("router", ("x", "e"), ("r",)),
        ("compress", ("x", "g"), ("y",)),
        ("merge_attention", ("a", "s", "b", "t"), ("y",)),
        ("stream_weights", ("x",), ("w",)),
        ("collapse_streams", ("x", "w"), ("y",)),
        ("mix_streams", ("x", "y", "w"), ("z",)),
    ]


def test_tensors_follow_the_documented_order() -> None:
    assert Linear("x", ("q", "k"), (A, A), (B, None)).tensors == (A, B, A, None)
    assert Norm("x", "y", None, 1e-5, bias=B).tensors == (None, B)
    assert Head("x", A).tensors == (A, None)
    assert EmbedPosition("p", A).tensors == EmbedTokenType("t", A).tensors == (A,)
    assert Recurrence("x", "y", B, 0, 0).tensors == (B,)
    assert Router("x", "r", A, 2, bias=B).tensors == (A, B, None, None)
    experts = Experts("x", "r", "y", None, STACK, STACK, "silu", 2, up_bias=A)
    assert experts.tensors == (None, None, STACK, A, STACK, None)
    assert experts.num_experts == 3


def test_values_are_as_wide_as_keys_unless_they_are_given_another_width() -> None:
    attention = Attention("q", "k", "k", "o", 0, 0, 4, 1, 6, 0.5)
    assert attention.value_dim == 6
    assert msgspec.structs.replace(attention, value_dim=4).value_dim == 4


def test_an_embedding_has_the_columns_that_it_names_or_all() -> None:
    table = TensorRef("t", (5, 12))
    assert Embed("h", table).column_range == (0, 12)
    assert Embed("h", table, columns=(3, 7)).column_range == (3, 7)


def test_rotary_dim_is_twice_the_number_of_frequencies() -> None:
    assert RopeTable((1.0, 0.5, 0.25)).rotary_dim == 6
