"""Layers of compressed attention keep a window, and for each compression parts and vectors."""

from __future__ import annotations

from llmd.api import Attention, Compress, Indexer, MergeAttention, Op, Rope
from tests.daemon.builtin.architectures.test_decoder import plan_of
from tests.golden.models.catalog import tiny_model

PLAN = plan_of(tiny_model("deepseek-v4"))
MIXERS = [part.ops for part in PLAN.parts if part.kind == "mixer"]


def found(ops: tuple[Op, ...], kind: type[Op]) -> list[Op]:
    return [op for op in ops if isinstance(op, kind)]


def test_groups_are_a_window_then_parts_and_vectors_of_each_compression() -> None:
    groups = [(group.window, group.head_dim, group.stride, group.layers) for group in PLAN.groups]
    assert groups == [
        (24, 32, 1, (0, 1, 2, 3)),
        (8, 128, 1, (1, 3)),
        (None, 32, 4, (1, 3)),
        (8, 96, 1, (1, 3)),
        (None, 24, 4, (1, 3)),
        (16, 64, 1, (2,)),
        (None, 32, 16, (2,)),
    ]
    assert all(group.kind == "latent" and group.kv_heads == 1 for group in PLAN.groups)


def test_each_op_has_the_group_that_fits_it() -> None:
    for ops in MIXERS:
        for op in ops:
            match op:
                case Attention(group=group, head_dim=dim) | Indexer(group=group, head_dim=dim):
                    assert PLAN.groups[group].head_dim == dim
                case Compress(group=group):
                    assert (PLAN.groups[group].window, PLAN.groups[group].stride) == (op.span, 1)
                    assert PLAN.groups[group + 1].stride == op.stride


def test_a_layer_sees_its_window_alone_or_chosen_vectors_or_all() -> None:
    windowed, choosing, seeing_all, _ = MIXERS
    assert [len(found(ops, Attention)) for ops in MIXERS] == [1, 2, 2, 2]
    assert [len(found(ops, Compress)) for ops in MIXERS] == [0, 2, 1, 2]
    assert [len(found(ops, Indexer)) for ops in MIXERS] == [0, 1, 0, 1]
    assert [len(found(ops, MergeAttention)) for ops in MIXERS] == [0, 1, 1, 1]
    assert not any(op.sums for op in windowed if isinstance(op, Attention))
    for ops, chosen in ((choosing, "chosen"), (seeing_all, None)):
        near, far = (op for op in ops if isinstance(op, Attention))
        assert (near.sinks is not None, near.chosen) == (True, None)
        assert (far.sinks, far.chosen) == (None, chosen)


def test_only_the_last_elements_turn_and_outputs_turn_back() -> None:
    for ops in MIXERS:
        queries, *_, outputs = (op.table for op in ops if isinstance(op, Rope))
        assert [freq != 0.0 for freq in queries.inv_freq] == [False] * 8 + [True] * 8
        assert [-freq for freq in outputs.inv_freq] == list(queries.inv_freq)
