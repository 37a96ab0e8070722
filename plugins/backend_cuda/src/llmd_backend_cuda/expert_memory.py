"""Memory that all mixtures of experts of a stage share."""

from __future__ import annotations

import msgspec

from llmd.api import Experts, Program, StageLimits
from llmd_backend_cuda.ops.router import products_bytes
from llmd_backend_cuda.runtime import Memory, Runtime

_GROUP_BYTES = 16


class ExpertSizes(msgspec.Struct, frozen=True):
    """Bytes of `ExpertMemory`."""

    products: int
    groups: int
    assigned: int
    row_numbers: int
    places: int
    gate: int
    up: int
    outputs: int

    @classmethod
    def of(cls, program: Program, limits: StageLimits) -> ExpertSizes:
        """Return what the largest mixture of a program needs; nothing if there is none."""
        products = products_bytes(program, limits)
        mixtures = [slotted.op for slotted in program.ops if isinstance(slotted.op, Experts)]
        if not mixtures:
            return cls(products, 0, 0, 0, 0, 0, 0, 0)
        assigned = [limits.max_rows * op.top_k for op in mixtures]
        shapes = [op.down.view_shape for op in mixtures]
        inner = max(4 * rows * shape[2] for rows, shape in zip(assigned, shapes, strict=True))
        return cls(
            products,
            groups=_GROUP_BYTES * max(assigned),
            assigned=4,
            row_numbers=4 * max(assigned),
            places=4 * limits.max_rows * max(shape[0] for shape in shapes),
            gate=inner,
            up=inner,
            outputs=max(4 * rows * shape[1] for rows, shape in zip(assigned, shapes, strict=True)),
        )

    @property
    def num_bytes(self) -> int:
        """Bytes of everything."""
        return sum(msgspec.structs.astuple(self))


class ExpertMemory(msgspec.Struct, frozen=True):
    """Rows and products of experts while a mixture is computed."""

    products: Memory
    """Of a router: float32 ``[max_rows, experts]``."""
    groups: Memory
    """Groups of assigned rows (``kernels/experts.cuh``): at most one for each assigned row."""
    assigned: Memory
    """int32: the number of assigned rows."""
    row_numbers: Memory
    """int32 ``[assigned rows]``."""
    places: Memory
    """int32 ``[max_rows, experts]``."""
    gate: Memory
    """Float32 ``[assigned rows, inner]``."""
    up: Memory
    """As ``gate``."""
    outputs: Memory
    """Float32 ``[assigned rows, width]``."""

    @classmethod
    def allocate(cls, runtime: Runtime, sizes: ExpertSizes) -> ExpertMemory:
        """Take the memory.

        Raises:
            MemoryBudgetError: there is not enough.
        """
        return cls(*(runtime.allocate(num_bytes) for num_bytes in msgspec.structs.astuple(sizes)))
