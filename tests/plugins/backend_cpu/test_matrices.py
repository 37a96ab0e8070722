from __future__ import annotations

from llmd.api import TensorRef, Weight
from llmd_backend_cpu.matrices import Member, matrices, members_of

MATRIX = Weight(TensorRef("m", (8, 16)), "f32")
STACK = Weight(TensorRef("s", (6, 8, 16), is_stack=True, members=(2, 5)), "q8")


def test_members_of_a_stack_are_its_matrices() -> None:
    assert [one.ref.members for one in matrices(STACK)] == [(2, 3), (3, 4), (4, 5)]
    assert {one.format for one in matrices(STACK)} == {"q8"}
    assert list(matrices(MATRIX)) == [MATRIX]


def test_stack_of_vectors_is_one() -> None:
    biases = Weight(TensorRef("b", (6, 8), is_stack=True), "f32")
    assert list(matrices(biases)) == [biases]


def test_members_are_numbered_from_zero() -> None:
    found = list(members_of(7, STACK))
    assert [(one.index, one.number) for one in found] == [(7, 0), (7, 1), (7, 2)]
    assert list(members_of(1, MATRIX)) == [Member(1, 0, MATRIX)]
