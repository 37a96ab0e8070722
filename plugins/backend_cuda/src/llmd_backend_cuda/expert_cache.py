"""Some experts in the device's memory, all in main memory: kernels read those that are missing over the bus.

A table has the address of each expert's block: of its slot on the device (`llmd_backend_cuda.expert_slots`),
or in main memory. Kernels find the matrices of an expert through it, so results do not depend on where it is,
and no step waits for a copy. Between steps, experts that were missed are copied to slots: the table of the
next step has the evicted ones in main memory again, the copies begin once the steps before it have ended, and
a later table has the new addresses, when a host that does not wait finds that the copies have ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import MemoryBudgetError, Weight
from llmd.api.byte_size import format_bytes
from llmd.api.expert_cache import ExpertCacheUse
from llmd_backend_cuda.context import CachedLayer
from llmd_backend_cuda.expert_blocks import ExpertBlocks
from llmd_backend_cuda.expert_slots import ExpertSlots, Move
from llmd_backend_cuda.loaded import Item, Use
from llmd_backend_cuda.runtime import Event, Runtime

_WORD = 32
_ADDRESS_BYTES = 8


class ExpertCache:
    """The experts of a program. Its steps call `ExpertSteps`."""

    def __init__(self, runtime: Runtime, layers: Sequence[ExpertBlocks], budget_bytes: int) -> None:
        """Fill the slots for which there is room in ``budget_bytes``, together with the table.

        Raises:
            MemoryBudgetError: the device has not that much, or the budget is less than the table.
        """
        self.runtime = runtime
        self.layers = tuple(layers)
        counts = [len(layer.contents) for layer in layers]
        self._first = np.cumsum([0, *counts])
        """Of each layer, among the experts of all."""
        self._words = np.cumsum([0, *(-(-count // _WORD) for count in counts)])
        table_bytes = _ADDRESS_BYTES * int(self._first[-1]) + 4 * self.num_words
        if budget_bytes < table_bytes:
            raise MemoryBudgetError(
                f"the table of experts of {format_bytes(table_bytes)} does not fit the"
                f" {format_bytes(budget_bytes)} for experts",
                hint="lower --kv-memory, --slots or --max-ctx",
            )
        sizes = [size for layer in layers for size in [layer.contents.shape[1]] * len(layer.contents)]
        self.slots = ExpertSlots(sizes, budget_bytes - table_bytes)
        self._memory = runtime.allocate(self.slots.num_bytes)
        self.table_memory = runtime.allocate(_ADDRESS_BYTES * int(self._first[-1]))
        self.used_memory = runtime.allocate(4 * self.num_words)
        self._copies = runtime.copy_stream()
        self._copied: Event | None = None
        """The point of the stream of copies where the last ones end; None: they have ended."""
        self._copying: Sequence[Move] = ()
        self.use = ExpertCacheUse(0, 0, 0, self.slots.num_bytes)
        self._in_main = np.array(
            [runtime.mapped_address(block) for layer in layers for block in layer.contents]
        )
        self.table = self._in_main.astype(np.uint64)
        """Address of each expert's block, for the next step."""
        self.held = np.zeros(len(self.table), np.bool_)
        """Whether each expert is on the device, in the next step."""
        self._fill()

    def items(self) -> dict[tuple[Weight, Use], Item]:
        """Return the matrices, with places in blocks instead of addresses."""
        return {
            (weight, "matrix"): matrix
            for layer in self.layers
            for weight, matrix in zip(layer.weights, layer.matrices, strict=True)
        }

    def of_weights(self) -> Mapping[Weight, CachedLayer]:
        """Return what kernels need of the layer of each stack."""
        return {
            weight: CachedLayer(
                self.table_memory.pointer + _ADDRESS_BYTES * int(self._first[number]),
                self.used_memory.pointer + 4 * int(self._words[number]),
            )
            for number, layer in enumerate(self.layers)
            for weight in layer.weights
        }

    @property
    def num_words(self) -> int:
        """Words of bits for the experts of all layers."""
        return int(self._words[-1])

    def flags(self, words: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Return which experts a step has used, from what `CachedLayer.used` has of all layers."""
        bits = np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little")
        first = _WORD * self._words
        counts = np.diff(self._first)
        found = [bits[at : at + count] for at, count in zip(first[:-1], counts, strict=True)]
        return np.concatenate(found).astype(np.bool_)

    def note(self, used: NDArray[np.bool_], held: NDArray[np.bool_]) -> None:
        """Count a step that has used some experts while some were on the device."""
        missed = used & ~held
        self.slots.note(used, missed)
        hits, misses = int((used & held).sum()), int(missed.sum())
        self.use = ExpertCacheUse(
            self.use.hits + hits,
            self.use.misses + misses,
            self.use.read_bytes + self.slots.bytes_of(missed),
            self.use.held_bytes,
        )

    def take_copied(self) -> bool:
        """If copies have ended, take the experts into the table; return whether there were any."""
        if self._copied is None or not self._copied.wait(0.0):
            return False
        self._copied = None
        self._take(self._copying)
        return True

    def evict(self) -> Sequence[Move]:
        """Choose what is copied next: nothing while copies run. The evicted ones leave the table."""
        moves = [] if self._copied is not None else self.slots.moves()
        if moves:
            evicted = [move.evicted for move in moves]
            self.table[evicted] = self._in_main[evicted]
            self._hold(evicted, on_device=False)
        return moves

    def begin_copies(self, moves: Sequence[Move]) -> None:
        """Copy experts once everything that was launched before, with an earlier table, has ended."""
        self._copies.wait_for(self.runtime.record())
        for move in moves:
            self._copies.upload(self._memory, int(self.slots.offsets[move.slot]), self._block(move.expert))
        self._copied, self._copying = self._copies.record(), moves
        num_bytes = sum(self._block(move.expert).nbytes for move in moves)
        self.use = msgspec.structs.replace(self.use, read_bytes=self.use.read_bytes + num_bytes)

    def _fill(self) -> None:
        """Give all slots their first owners, and put the table on the device."""
        moves = [Move(expert, slot, expert) for expert, slot in self.slots.owners()]
        for move in moves:
            self.runtime.upload(self._memory, int(self.slots.offsets[move.slot]), self._block(move.expert))
        self._take(moves)
        self.runtime.upload(self.table_memory, 0, self.table)
        self.runtime.synchronize()

    def _take(self, moves: Sequence[Move]) -> None:
        """Let the table have the slots of experts that were copied."""
        experts = [move.expert for move in moves]
        offsets = self.slots.offsets[[move.slot for move in moves]]
        self.table[experts] = self._memory.pointer + offsets
        self._hold(experts, on_device=True)

    def _hold(self, experts: Sequence[int], *, on_device: bool) -> None:
        held = self.held.copy()  # steps in flight keep theirs
        held[list(experts)] = on_device
        self.held = held

    def _block(self, expert: int) -> NDArray[np.uint8]:
        layer = int(np.searchsorted(self._first, expert, "right")) - 1
        block: NDArray[np.uint8] = self.layers[layer].contents[expert - self._first[layer]]
        return block


class _Used(msgspec.Struct):
    """What a step in flight will tell."""

    words: NDArray[np.uint32]
    held: NDArray[np.bool_]
    end: Event
    """Where ``words`` have come to main memory."""


class ExpertSteps:
    """The cache for the steps of a stage, each of which has a ticket."""

    def __init__(self, cache: ExpertCache, tickets: int) -> None:
        """Take pinned memory.

        Raises:
            MemoryBudgetError: there is not enough.
        """
        runtime = cache.runtime
        self._cache = cache
        self._tables = [runtime.pinned(cache.table.nbytes).view(np.uint64) for _ in range(tickets)]
        self._words = [runtime.pinned(4 * cache.num_words).view(np.uint32) for _ in range(tickets)]
        self._flights: deque[_Used] = deque()

    def begin(self, place: int) -> None:
        """Queue the table of a step, and copies of what earlier ones have missed.

        ``place`` is that of its ticket, whose last step has ended.
        """
        cache = self._cache
        while self._flights and self._flights[0].end.wait(0.0):
            step = self._flights.popleft()
            cache.note(cache.flags(step.words), step.held)
        is_changed = cache.take_copied()
        moves = cache.evict()
        if is_changed or moves:
            self._tables[place][:] = cache.table
            cache.runtime.upload(cache.table_memory, 0, self._tables[place])
        if moves:
            cache.begin_copies(moves)

    def end(self, place: int) -> None:
        """Queue the copy of what a step has used to main memory, after its launches."""
        cache = self._cache
        words = self._words[place]
        cache.runtime.download(words, cache.used_memory, 0)
        self._flights.append(_Used(words, cache.held, cache.runtime.record()))
