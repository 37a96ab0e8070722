"""What ops need to know of the stage that they belong to."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from llmd.api import Program, StageLimits
from llmd_backend_cuda.matrices import DeviceMatrix
from llmd_backend_cuda.ops.fastest import Fastest
from llmd_backend_cuda.runtime import Memory, Runtime


class StepArgs(ctypes.Structure):
    """``struct Step`` of ``kernels/step.cuh``."""

    _fields_ = (
        ("counts", ctypes.c_void_p),
        ("token_ids", ctypes.c_void_p),
        ("positions", ctypes.c_void_p),
        ("sequences", ctypes.c_void_p),
        ("token_types", ctypes.c_void_p),
        ("row_offsets", ctypes.c_void_p),
        ("output_rows", ctypes.c_void_p),
        ("fed", ctypes.c_void_p),
    )


class CachedLayer(msgspec.Struct, frozen=True):
    """A layer of which only some experts are in the device's memory."""

    blocks: int
    """Address of uint64 ``[experts]``: the address of each expert's block."""
    used: int
    """Address of uint32 ``[experts / 32]``, rounded up: a bit for each expert that the last step used."""


class Context(msgspec.Struct, frozen=True):
    """A stage's memory, at addresses that do not change."""

    runtime: Runtime
    program: Program
    limits: StageLimits
    step: StepArgs
    slots: Sequence[Memory]
    """Float32 ``[max_rows, width]`` for each slot of the program."""
    vectors: Sequence[Memory | None]
    """Float32 values of each weight of the program that is a vector; else None."""
    ropes: Sequence[Memory]
    """Float64 ``inv_freq`` of each rope table."""
    matrices: Sequence[DeviceMatrix | None] = ()
    """The weights of the program that rows are multiplied by; else None."""
    rounded: Memory | None = None
    """Rows as float16, for the products of more than 8 rows."""
    partials: Memory | None = None
    """Sums of the slices of a product."""
    fastest: Fastest = MappingProxyType({})
    """Variants of products, as they were measured."""
    cached: Mapping[int, CachedLayer] = MappingProxyType({})
    """By weight of the program, of matrices of experts whose addresses are places in blocks."""

    def slot(self, index: int) -> int:
        """Return the address of a slot."""
        return self.slots[index].pointer

    def vector(self, index: int | None) -> int:
        """Return the address of a vector; 0 if there is none."""
        memory = None if index is None else self.vectors[index]
        return 0 if memory is None else memory.pointer
