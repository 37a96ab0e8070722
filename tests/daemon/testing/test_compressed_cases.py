"""The cases of compressed attention have rows that see nothing, all vectors, and chosen ones."""

from __future__ import annotations

from llmd.api import Attention, Compress, Indexer, Rope
from llmd.testing.compressed_cases import compressed_cases

CASES = {case.name: case for case in compressed_cases()}


def test_vectors_overlap_or_not_and_stand_for_one_token_or_for_several_blocks() -> None:
    compressions = [op for case in CASES.values() for op in case.ops if isinstance(op, Compress)]
    assert {op.overlap for op in compressions} == {True, False}
    assert {op.stride for op in compressions} == {1, 2, 4, 16, 32}


def test_what_vectors_are_made_of_is_kept_as_long_as_it_is_read() -> None:
    for case in CASES.values():
        for op in case.ops:
            if isinstance(op, Compress):
                assert case.plan.groups[op.group].window == op.span
                assert case.plan.groups[op.group].head_dim == 2 * op.bias.view_shape[0] // op.stride


def test_an_indexer_chooses_fewer_vectors_than_rows_see() -> None:
    chosen = {name: case for name, case in CASES.items() if "chosen" in name}
    assert chosen
    for case in chosen.values():
        (indexer,) = (op for op in case.ops if isinstance(op, Indexer))
        longest = max(map(len, case.tokens)) // case.plan.groups[indexer.group].stride
        assert indexer.top_k < longest
        assert [op.chosen for op in case.ops if isinstance(op, Attention)] == [None, "chosen"]


def test_vectors_are_rotated_by_the_position_of_their_first_token() -> None:
    assert [op.stride for op in CASES["rope/stride"].ops if isinstance(op, Rope)] == [4]
