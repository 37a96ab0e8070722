"""Streamed weights: they stay in memory of the host, and are copied to one of two slots of the device.

While the shaders of a part run, the weights of the next streamed part are copied to the other slot. Without
our additions to Kompute nothing is copied: shaders then read memory of the host in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from llmd.api import Head, Program
from llmd.api.streaming import streamed_weights
from llmd_backend_vulkan.commands import WORD, Copy, Segment, Slot
from llmd_backend_vulkan.matrices import DeviceMatrix, moved
from llmd_backend_vulkan.memory import ALIGNMENT, Arena, Region
from llmd_backend_vulkan.programs import Phase

NUM_SLOTS = 2
"""Streamed parts whose weights are on the device at a time: one is computed, the next is copied."""


class Placed(msgspec.Struct, frozen=True):
    """A program's weights by index, as the shaders of a recording find them."""

    matrices: Sequence[DeviceMatrix | None]
    """None: the weight is no matrix, or not where this recording reads it."""
    vectors: Sequence[Region | None]
    """None: the weight is no vector, or not where this recording reads it."""
    copies: Mapping[int, tuple[Slot, tuple[Copy, ...]]] = {}
    """Of each streamed part of the recording: its slot, and what fills it."""

    def segment(self, part: int | None, phases: Sequence[Phase], name: str) -> Segment:
        """Return the segment of a part, or of parts that are not streamed."""
        if part is None:
            return Segment(phases, name=name)
        slot, copies = self.copies[part]
        return Segment(phases, name=f"part {part}", slot=slot, copies=copies)


def units_of(program: Program, *, head: bool) -> dict[int, tuple[int, ...]]:
    """Return the streamed weights that the head reads, or all other instructions, by part."""
    streamed = streamed_weights(program)
    read = {
        index
        for slotted in program.ops
        for index in slotted.weights
        if index is not None and isinstance(slotted.op, Head) == head
    }
    units = {part: tuple(index for index in indices if index in read) for part, indices in streamed.items()}
    return {part: indices for part, indices in units.items() if indices}


def slot_words(program: Program, weights: Placed, most_words: int) -> list[int]:
    """Return the words of a slot, cut into buffers of at most ``most_words``."""
    sizes: list[int] = []
    for unit in _all_units(program):
        for number, size in enumerate(_packed(_regions(weights, unit), most_words)[1]):
            sizes[number : number + 1] = [max([size, *sizes[number : number + 1]])]
    return sizes


def slots_bytes(program: Program, weights: Placed, most_words: int) -> int:
    """Return the bytes of the device's memory that all slots take."""
    count = min(NUM_SLOTS, len(list(_all_units(program))))
    return WORD * count * sum(slot_words(program, weights, most_words))


class WeightStream:
    """The slots of a stage, and its weights as they are found there."""

    def __init__(self, arena: Arena, program: Program, weights: Placed) -> None:
        """Take the memory. ``weights`` has streamed weights in memory of the host.

        Raises:
            MemoryBudgetError: there is not enough memory.
        """
        self._most_words = arena.runtime.most_words
        self._program = program
        self._weights = weights
        sizes = slot_words(program, weights, self._most_words)
        count = min(NUM_SLOTS, len(list(_all_units(program))))
        self._regions = [[arena.take(size, alone=True) for size in sizes] for _ in range(count)]
        self._slots = [arena.runtime.slot() for _ in range(count)]
        body, head = (units_of(program, head=head) for head in (False, True))
        self.body = self._placed(body, 0)
        """For everything but the head."""
        self.head = self._placed(head, len(body))
        """For the head."""

    def _placed(self, units: Mapping[int, Sequence[int]], first: int) -> Placed:
        """Return the weights with those of units in slots, which take turns; ``first`` units came before."""
        matrices, vectors = list(self._weights.matrices), list(self._weights.vectors)
        copies = {}
        for number, (part, unit) in enumerate(units.items(), first % NUM_SLOTS):
            slot, regions = self._slots[number % NUM_SLOTS], self._regions[number % NUM_SLOTS]
            sources = _regions(self._weights, unit)
            places = _packed(sources, self._most_words)[0]
            targets = {
                id(source): Region(regions[shelf].buffer, regions[shelf].at + at, source.num_words)
                for source, (shelf, at) in zip(sources, places, strict=True)
            }
            for index in unit:
                matrix, vector = matrices[index], vectors[index]
                if matrix is not None:
                    matrices[index] = moved(matrix, [targets[id(piece.region)] for piece in matrix.pieces])
                if vector is not None:
                    vectors[index] = targets[id(vector)]
            copies[part] = slot, tuple(_copy(source, targets[id(source)]) for source in sources)
        return Placed(matrices, vectors, copies)


def _all_units(program: Program) -> list[tuple[int, ...]]:
    return [unit for head in (False, True) for unit in units_of(program, head=head).values()]


def _regions(weights: Placed, unit: Sequence[int]) -> list[Region]:
    """Return the memory of some weights, of each matrix and of each vector."""
    found: list[Region] = []
    for index in unit:
        matrix, vector = weights.matrices[index], weights.vectors[index]
        found += [] if matrix is None else [piece.region for piece in matrix.pieces]
        found += [] if vector is None else [vector]
    return found


def _packed(regions: Sequence[Region], most_words: int) -> tuple[list[tuple[int, int]], list[int]]:
    """Return each region's buffer of a slot and its first word there, and the words of each buffer."""
    places, ends = [], [0]
    for region in regions:
        words = -(-region.num_words // ALIGNMENT) * ALIGNMENT
        if ends[-1] and ends[-1] + words > most_words:
            ends.append(0)
        places.append((len(ends) - 1, ends[-1]))
        ends[-1] += words
    return places, ends


def _copy(source: Region, target: Region) -> Copy:
    return Copy(source.buffer, source.at, target.buffer, target.at, source.num_words)
