"""Reads experts that a step needs and that are not in memory."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

from llmd.api import Program, TensorSource
from llmd.api.expert_cache import ReadsAgain, expert_stacks
from llmd_backend_cpu import _ext
from llmd_backend_cpu.matrices import Member, fill, members_of


class ExpertReader:
    """Fills the matrices of experts. Native weights call it while a step is submitted."""

    def __init__(self, program: Program, tensors: TensorSource, native: _ext.Weights) -> None:
        stacks = expert_stacks(program)
        self._members = {
            (index, member.number): member
            for index in stacks
            for member in members_of(index, program.weights[index])
        }
        self._tensors = tensors
        self._native = weakref.ref(native)  # it owns this object

    def __call__(self, weights: Sequence[int], members: Sequence[int]) -> None:
        """Read some members of some stacks.

        Raises:
            CheckpointError: a file has shrunk, or its values do not fit the format.
        """
        native, tensors = self._native(), self._tensors
        assert native is not None, "it calls this"
        wanted: list[Member] = [self._members[weight, member] for member in members for weight in weights]
        reads_again = tensors if isinstance(tensors, ReadsAgain) else None
        if reads_again is not None:
            reads_again.expect([member.weight for member in wanted])
        for member in wanted:
            fill(native, member, tensors)
            if reads_again is not None:
                # At once: mapped pages of the file are memory of the process, in addition to the copy.
                reads_again.give_back([member.weight])
