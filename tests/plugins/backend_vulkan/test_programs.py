"""Ops that do not depend on each other share a phase."""

from __future__ import annotations

from llmd.api import Add, Norm, SlottedOp
from llmd_backend_vulkan.programs import joined
from llmd_backend_vulkan.runtime import Dispatch, Shader


def op(reads: tuple[int, ...], writes: tuple[int, ...]) -> SlottedOp:
    """Return an op of which only the slots matter."""
    return SlottedOp(Add("a", "b", "c"), reads, writes)


def phase(name: str) -> list[Dispatch]:
    """Return a phase of one dispatch."""
    return [Dispatch(Shader(name), (), (), (1, 1, 1))]


def names(phases: list[list[Dispatch]]) -> list[list[str]]:
    """Return the names of the shaders of phases."""
    return [[one.shader.name for one in dispatches] for dispatches in phases]


def test_independent_ops_share_a_phase() -> None:
    ops = [(op((0,), (1,)), [phase("q")]), (op((2,), (3,)), [phase("k")]), (op((1, 3), (4,)), [phase("a")])]
    assert names(joined(ops)) == [["q", "k"], ["a"]]


def test_a_slot_is_not_written_while_it_is_read_or_written() -> None:
    reads_first = [(op((0,), (1,)), [phase("x")]), (op((2,), (0,)), [phase("y")])]
    writes_twice = [(op((0,), (1,)), [phase("x")]), (op((2,), (1,)), [phase("y")])]
    assert names(joined(reads_first)) == names(joined(writes_twice)) == [["x"], ["y"]]


def test_an_op_of_several_phases_begins_after_the_one_before_it() -> None:
    ops = [(op((0,), (1,)), [phase("x")]), (op((2,), (3,)), [phase("store"), phase("attend")])]
    assert names(joined([*ops, (op((4,), (5,)), [phase("z")])])) == [["x"], ["store"], ["attend", "z"]]


def test_norms_are_ops_like_others() -> None:
    norm = SlottedOp(Norm("x", "y", None, 1e-6), (0,), (1,), (None, None))
    assert names(joined([(norm, [phase("norm")]), (op((1,), (2,)), [phase("add")])])) == [["norm"], ["add"]]
