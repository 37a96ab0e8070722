"""What ops need to know of the stage that they belong to."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import msgspec

from llmd.api import Program, SlottedOp, StageLimits
from llmd_backend_vulkan.commands import Buffer
from llmd_backend_vulkan.kv_memory import KVPool
from llmd_backend_vulkan.matrices import DeviceMatrix
from llmd_backend_vulkan.memory import Region
from llmd_backend_vulkan.step_memory import StepLayout

NONE = 0xFFFFFFFF
"""A place that is not read."""


class Context(msgspec.Struct, frozen=True):
    """The memory of a stage, for the steps of one bucket. All places are words of ``work``."""

    program: Program
    limits: StageLimits
    layout: StepLayout
    work: Buffer
    step_at: int
    """Where the arrays of a step begin."""
    slots: Sequence[int]
    """Where the slots of the program are: float32 ``[max_rows][stride]``."""
    scratch: Mapping[str, int]
    """Where memory is that ops use while they run, by name: all ops of a kind share it."""
    spans: int
    """Most spans of attention in a step of the bucket; 0: spans are not computed apart."""
    matrices: Sequence[DeviceMatrix | None]
    """The weights of the program that are matrices or tables; else None."""
    vectors: Sequence[Region | None]
    """Float32 values of each weight of the program that is a vector; else None."""
    pools: Mapping[int, KVPool]
    """By KV group."""
    changes: Mapping[SlottedOp, int]
    """Where the changes of each op with adapters are, from the beginning of those of all ops."""
    adapted: bool = False
    """Whether rows of the step have adapters."""

    @property
    def rows(self) -> int:
        """Most rows of a step."""
        return self.layout.bucket

    def place(self, name: str) -> int:
        """Return where an array of the step is."""
        return self.step_at + self.layout.places[name]

    @property
    def counts(self) -> int:
        """Where the numbers of rows, sequences and output rows are."""
        return self.place("counts")

    def stride(self, slot: int) -> int:
        """Return the words from one row of a slot to the next."""
        return stride_of(self.program.slot_widths[slot])

    def matrix(self, index: int | None) -> DeviceMatrix:
        """Return a matrix of the program."""
        found = None if index is None else self.matrices[index]
        assert found is not None, "the op says that it is a matrix"
        return found

    def vector(self, index: int | None) -> tuple[Buffer, int]:
        """Return the buffer and the place of a vector; of none, a buffer that is bound but not read."""
        region = None if index is None else self.vectors[index]
        return (self.work, NONE) if region is None else (region.buffer, region.at)


def stride_of(width: int) -> int:
    """Return the words of a row of ``width`` elements: a multiple of 4."""
    return -(-width // 4) * 4


def float_word(value: float) -> int:
    """Return the bits of a float32."""
    word: int = struct.unpack("<I", struct.pack("<f", value))[0]
    return word
