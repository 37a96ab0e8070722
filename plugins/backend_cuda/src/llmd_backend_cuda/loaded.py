"""Weights as kernels read them: on the card, or in main memory until they are copied to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import Program, Weight
from llmd_backend_cuda.context import CachedLayer
from llmd_backend_cuda.matrices import DeviceMatrix
from llmd_backend_cuda.ops.embed import Table, TableFormat
from llmd_backend_cuda.runtime import Memory, Runtime

Use = Literal["matrix", "table", "vector"]
"""How ops use a weight."""

_ALIGNMENT = 256


class Range(msgspec.Struct):
    """A part of memory that belongs to another object; see `llmd_backend_cuda.runtime.Memory`."""

    pointer: int
    num_bytes: int


class LoadedTable(msgspec.Struct, frozen=True):
    """A table in device memory, as the file has it."""

    memory: Memory
    format: TableFormat

    @property
    def table(self) -> Table:
        """The table for kernels."""
        return Table(self.memory.pointer, self.format)


Item = DeviceMatrix | LoadedTable | Memory
"""A weight for one use; a vector is float32 values in memory."""


class HostWeight(msgspec.Struct, frozen=True):
    """A weight for one use in pinned main memory, with the bytes that it has on the device."""

    contents: NDArray[np.uint8]
    item: Item
    """The weight, with offsets in ``contents`` instead of addresses."""

    @classmethod
    def of(cls, runtime: Runtime, item: Item) -> Self:
        """Copy a weight from the device, and wait for it.

        Raises:
            MemoryBudgetError: there is too little main memory.
        """
        pieces: list[tuple[int, Memory]] = []
        end = 0

        def place(memory: Memory) -> Range:
            nonlocal end
            pieces.append((end, memory))
            end += -(-memory.num_bytes // _ALIGNMENT) * _ALIGNMENT
            return Range(pieces[-1][0], memory.num_bytes)

        relative = moved(item, place)
        contents = runtime.pinned(end)
        for first, memory in pieces:
            runtime.download(contents[first : first + memory.num_bytes], memory, 0)
        runtime.synchronize()  # the caller may free the weight on the device
        return cls(contents, relative)

    def at(self, address: int) -> Item:
        """Return the weight of which ``contents`` is copied to an address."""
        return moved(self.item, lambda memory: Range(address + memory.pointer, memory.num_bytes))


class Loaded(msgspec.Struct):
    """Weights by use: the same weight may be a matrix and a table."""

    matrices: dict[Weight, DeviceMatrix]
    tables: dict[Weight, LoadedTable]
    vectors: dict[Weight, Memory]
    streamed: dict[tuple[Weight, Use], HostWeight]
    """Weights that stay in main memory."""

    @classmethod
    def empty(cls) -> Self:
        """Return nothing."""
        return cls({}, {}, {}, {})

    def find(self, weight: Weight, use: Use) -> Item | None:
        """Return a weight on the device; None if it is not there."""
        match use:
            case "matrix":
                return self.matrices.get(weight)
            case "table":
                return self.tables.get(weight)
            case "vector":
                return self.vectors.get(weight)

    def add(self, weight: Weight, item: Item) -> None:
        """Add a weight on the device."""
        if isinstance(item, DeviceMatrix):
            self.matrices[weight] = item
        elif isinstance(item, LoadedTable):
            self.tables[weight] = item
        else:
            self.vectors[weight] = item

    def joined(self, items: Mapping[tuple[Weight, Use], Item]) -> Loaded:
        """Return the weights on the device with some that are streamed to it."""
        both = Loaded(dict(self.matrices), dict(self.tables), dict(self.vectors), {})
        for (weight, _), item in items.items():
            both.add(weight, item)
        return both


class PlacedWeights(msgspec.Struct, frozen=True):
    """The weights of a program for its kernels, by their places in it."""

    matrices: Sequence[DeviceMatrix | None]
    """The weights that rows are multiplied by; else None."""
    vectors: Sequence[Memory | None]
    """The weights that are float32 values; else None."""
    tables: Mapping[int, Table]
    cached: Mapping[int, CachedLayer] = MappingProxyType({})
    """What kernels need of layers whose experts are in blocks, for each of their matrices."""

    @classmethod
    def of(
        cls, program: Program, loaded: Loaded, cached: Mapping[Weight, CachedLayer] = MappingProxyType({})
    ) -> Self:
        """Return the weights of a program among those on the device; ``cached`` are of stacks in blocks."""
        return cls(
            [loaded.matrices.get(weight) for weight in program.weights],
            [loaded.vectors.get(weight) for weight in program.weights],
            {
                index: loaded.tables[weight].table
                for index, weight in enumerate(program.weights)
                if weight in loaded.tables
            },
            {index: cached[weight] for index, weight in enumerate(program.weights) if weight in cached},
        )


def moved(item: Item, place: Callable[[Memory], Memory]) -> Item:
    """Return a weight with each memory replaced by what ``place`` returns for it."""
    if isinstance(item, DeviceMatrix):
        return item.moved(place)
    if isinstance(item, LoadedTable):
        return LoadedTable(place(item.memory), item.format)
    return place(item)
