"""Experts of which only some are in memory: a device reads the others when a step uses them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, Self, runtime_checkable

import msgspec

from llmd.api.expert_ops import Experts
from llmd.api.program import Program
from llmd.api.tensors import Weight


class ExpertCacheUse(msgspec.Struct, frozen=True):
    """What a device had to read of experts, since their weights were loaded."""

    hits: int
    """How often a step found an expert of a layer in memory."""
    misses: int
    """How often it did not."""
    read_bytes: int
    """Bytes of the experts that were read, as the device keeps them."""
    held_bytes: int
    """Bytes of the experts that are in memory now."""

    @classmethod
    def sum(cls, uses: Iterable[Self]) -> Self | None:
        """Return the sum; None if there are none."""
        found = list(uses)
        if not found:
            return None
        totals = (sum(getattr(use, name) for use in found) for name in cls.__struct_fields__)
        return cls(*totals)


@runtime_checkable
class CachesExperts(Protocol):
    """What `LoadedWeights` of a device with the feature `EXPERT_CACHE` have in addition."""

    def expert_cache(self) -> ExpertCacheUse | None:
        """Return the use of the cache; None if all experts are in memory.

        Called about once a second, also while another thread uses a stage.
        """
        ...


@runtime_checkable
class ReadsAgain(Protocol):
    """What a `TensorSource` has in addition whose weights are mapped files."""

    def expect(self, weights: Sequence[Weight]) -> None:
        """Begin to read weights from the disk, without waiting for it."""
        ...

    def give_back(self, weights: Sequence[Weight]) -> None:
        """Drop the pages of weights from this process: they will not be read soon. Arrays stay valid."""
        ...


def expert_stacks(program: Program) -> frozenset[int]:
    """Return the weights that are matrices of experts, as indices in `Program.weights`."""
    return frozenset(
        index
        for one in program.ops
        if isinstance(one.op, Experts)
        for index in one.weights
        if index is not None and program.weights[index].ref.is_matrix
    )
