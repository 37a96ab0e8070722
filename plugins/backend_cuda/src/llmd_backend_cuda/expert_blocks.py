"""Experts in pinned main memory, each in a block of its own, which kernels can read over the bus.

A block has all matrices of an expert of a layer in the layout of ``kernels/weights.cuh``, so a single copy
takes it to the device's memory, and kernels read it from either with the same instructions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import Experts, Program, TensorSource, Weight
from llmd.api.streaming import resident_weights
from llmd_backend_cuda.loaded import Range
from llmd_backend_cuda.matrices import DeviceMatrix, load_member
from llmd_backend_cuda.matrix_forms import MatrixForm, MatrixSize
from llmd_backend_cuda.runtime import Memory, Runtime

_ALIGNMENT = 256
"""Of what is in a block, and of blocks."""


class ExpertBlocks(msgspec.Struct, frozen=True):
    """The experts of a layer."""

    weights: tuple[Weight, ...]
    """The stacks of matrices."""
    matrices: tuple[DeviceMatrix, ...]
    """For each stack, the matrix of one expert: its addresses are places in a block."""
    contents: NDArray[np.uint8]
    """Pinned ``[experts, bytes of a block]``."""


class ExpertLoading:
    """Loads the experts of a program's layers, one at a time, through the device, which arranges them."""

    def __init__(self, runtime: Runtime, program: Program, known: Sequence[ExpertBlocks] = ()) -> None:
        """``known`` are the layers that other programs have loaded; they are used again."""
        self._runtime = runtime
        self._have = {one.weights: one for one in known}
        layers = _cached_layers(program)
        self._weights = [tuple(program.weights[index] for index in layer) for layer in layers]
        self._loading: list[_Layer | None] = [None] * len(layers)
        self._places: dict[int, list[tuple[int, int]]] = {}
        for number, layer in enumerate(layers):
            for place, index in enumerate(layer):
                self._places.setdefault(index, []).append((number, place))

    @property
    def weights(self) -> Mapping[int, object]:
        """The weights of the program to load, by index."""
        return self._places

    def load(self, index: int, tensors: TensorSource) -> None:
        """Load a weight.

        Raises:
            MemoryBudgetError: there is too little memory.
        """
        for number, place in self._places[index]:
            weights = self._weights[number]
            if weights in self._have:
                continue
            layer = self._loading[number] or _Layer(self._runtime, weights)
            self._loading[number] = layer
            layer.load(place, tensors)
            if layer.is_complete:
                self._have[weights] = layer.blocks
                self._loading[number] = None

    def layers(self) -> list[ExpertBlocks]:
        """Return the layers once all their weights are loaded."""
        return [self._have[weights] for weights in self._weights]


class _Layer:
    """A layer that is being loaded, with memory on the device for the matrices of one expert."""

    def __init__(self, runtime: Runtime, weights: tuple[Weight, ...]) -> None:
        self._runtime = runtime
        self._left = len(weights)
        self._made = [DeviceMatrix.allocate(runtime, _size_of(weight)) for weight in weights]
        self._pieces: list[list[tuple[int, Memory]]] = []
        end = 0
        relative = []
        for matrix in self._made:
            moved, pieces, end = _placed(matrix, end)
            relative.append(moved)
            self._pieces.append(pieces)
        experts = weights[0].ref.view_shape[0]
        contents = runtime.pinned(experts * end).reshape(experts, end)
        self.blocks = ExpertBlocks(weights, tuple(relative), contents)

    @property
    def is_complete(self) -> bool:
        """Whether all matrices are in their blocks."""
        return not self._left

    def load(self, place: int, tensors: TensorSource) -> None:
        """Load the matrices of a stack, one after the other."""
        weight, matrix = self.blocks.weights[place], self._made[place]
        first = weight.ref.members[0] if weight.ref.members else 0
        for number, block in enumerate(self.blocks.contents):
            data = tensors.read(Weight(weight.ref.member(first + number), weight.format))
            load_member(self._runtime, matrix, 0, data)
            for at, memory in self._pieces[place]:
                self._runtime.download(block[at : at + memory.num_bytes], memory, 0)
        self._runtime.synchronize()
        self._left -= 1


def _cached_layers(program: Program) -> list[tuple[int, ...]]:
    """Return the matrices of each mixture whose experts need not be on the device: none without a limit."""
    if program.expert_bytes is None:
        return []
    resident = set(resident_weights(program))
    layers = [
        tuple(index for index in one.weights[::2] if index is not None)
        for one in program.ops
        if isinstance(one.op, Experts)
    ]
    return [layer for layer in dict.fromkeys(layers) if resident.issuperset(layer)]


def _size_of(weight: Weight) -> MatrixSize:
    """Return the size of a member of a stack."""
    _, out, width = weight.ref.view_shape
    return MatrixSize(MatrixForm.of(weight.format, width), out, width)


def _placed(matrix: DeviceMatrix, end: int) -> tuple[DeviceMatrix, list[tuple[int, Memory]], int]:
    """Return a matrix with places in a block from ``end`` on, its memories with theirs, and the new end."""
    pieces: list[tuple[int, Memory]] = []

    def place(memory: Memory) -> Range:
        nonlocal end
        pieces.append((end, memory))
        end += -(-memory.num_bytes // _ALIGNMENT) * _ALIGNMENT
        return Range(pieces[-1][0], memory.num_bytes)

    return matrix.moved(place), pieces, end
