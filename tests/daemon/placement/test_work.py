from __future__ import annotations

import pytest

from llmd.api.kv import kv_block_bytes
from llmd.api.step import BLOCK_LEN
from llmd.models.lowering import lower
from llmd.placement.work import ExpertWeights, Span, Weights, Work, work_of
from llmd.testing.compressed_cases import compressed_cases
from llmd.testing.indexer_cases import indexer_cases
from llmd.testing.plans import TinyModel

MODEL = TinyModel(
    layers=4, hidden=40, heads=4, kv_heads=2, head_dim=12, ffn=72, vocab=131, window=20, bias=False
)
PLAN = MODEL.plan()


def work(first: int, last: int, matrices: str = "f32", model: TinyModel = MODEL) -> Work:
    program = lower(
        model.plan(),
        first,
        last,
        format_of=lambda kind, ref: matrices if kind == "linear" and len(ref.shape) == 2 else "f32",
    )
    return work_of(program, "f16")


def test_a_feed_forward_part_reads_its_matrices_and_norm() -> None:
    part = work(2, 3)
    matrices, norm = 3 * 72 * 40, 40
    assert part.num_parts == 1
    assert part.layers.keys() == {"f32"}
    assert (part.layers["f32"].elements, part.layers["f32"].num_bytes) == (
        matrices + norm,
        4 * (matrices + norm),
    )
    assert not part.head
    assert not part.spans
    assert part.state_bytes == 0


def test_formats_are_counted_apart() -> None:
    part = work(2, 3, "f16")
    assert {name: one.elements for name, one in part.layers.items()} == {"f16": 3 * 72 * 40, "f32": 40}
    assert part.layers["f16"].num_bytes == 2 * 3 * 72 * 40


@pytest.mark.parametrize(("part", "group", "window"), [(1, 0, None), (3, 1, 20)])
def test_attention_reads_the_keys_and_values_of_its_layers(part: int, group: int, window: int | None) -> None:
    token_bytes = kv_block_bytes(PLAN.groups[group], "f16") // BLOCK_LEN // 2  # the group has two layers
    assert work(part, part + 1).spans == (Span(window, token_bytes, 4 * 4 * 12),)
    both = work(1, 1 + 2 * 4)
    assert both.spans[group] == Span(window, 2 * token_bytes, 2 * 4 * 4 * 12)


def test_chosen_positions_limit_what_attention_reads_but_not_what_is_scored() -> None:
    (case,) = (case for case in indexer_cases() if case.name == "indexer/even-f16")
    program = lower(case.plan, 1, 2, format_of=lambda _kind, _ref: "f32")
    latents, keys = work_of(program, "f16").spans
    assert latents == Span(6, 2 * 37, 2 * 5 * (37 + 16))
    assert keys == Span(None, 2 * 16, 2 * 8 * 16)


def test_vectors_for_several_tokens_are_read_that_much_less() -> None:
    (case,) = (case for case in compressed_cases() if case.name == "merge_attention/chosen-f16")
    program = lower(case.plan, 1, 2, format_of=lambda _kind, _ref: "f32")
    _, vectors, near, keys = work_of(program, "f16").spans
    assert vectors == Span(4 * 5, 2 * 16 // 4, 2 * 4 * (16 + 16) // 4)
    assert near == Span(7, 2 * 16, 2 * 4 * (16 + 16))
    assert keys == Span(None, 2 * 14 // 4, 2 * 6 * 14 // 4)


def test_a_windowed_row_reads_no_more_than_its_window() -> None:
    span = Span(20, 1, 1)
    assert (span.positions(7), span.positions(20), span.positions(1000)) == (7, 20, 20)
    assert Span(None, 1, 1).positions(1000) == 1000


def test_the_embedding_multiplies_nothing_and_the_head_only_output_rows() -> None:
    assert not work(0, 1).layers
    head = work(len(PLAN.parts) - 1, len(PLAN.parts))
    assert head.num_parts == 0
    assert head.head["f32"].elements == 131 * 40
    assert head.layers["f32"].elements == 40, "its norm"


def test_a_tensor_that_two_ops_share_is_read_once() -> None:
    tied = TinyModel(layers=1, tied=True)
    whole = work(0, len(tied.plan().parts), model=tied)
    assert whole.head["f32"].elements == 131 * 40


def test_experts_are_counted_apart_from_what_every_row_reads() -> None:
    mixture = TinyModel(layers=1, hidden=40, ffn=72, experts=9, top_k=2)
    part = work(2, 3, model=mixture)
    assert part.layers["f32"].elements == 40 + 9 * 40, "norm and router"
    (experts,) = part.experts
    assert (experts.format, experts.num_experts, experts.top_k) == ("f32", 9, 2)
    assert experts.whole == Weights(4 * 9 * 3 * 72 * 40, 9 * 3 * 72 * 40)


def test_more_rows_use_more_experts_but_not_in_proportion() -> None:
    experts = ExpertWeights("f32", Weights(0, 0), 8, 2)
    assert [experts.share(rows) for rows in (1, 2, 3)] == [1 / 4, 7 / 16, 37 / 64]
    assert ExpertWeights("f32", Weights(0, 0), 8, 8).share(1) == 1.0


def test_states_are_read_and_written() -> None:
    hybrid = TinyModel(layers=4, hybrid=True)
    (group,) = (group for group in hybrid.plan().groups if group.kind == "state")
    part = work(5, 6, model=hybrid)
    assert part.state_bytes == 2 * group.state_bytes
    assert not part.spans
