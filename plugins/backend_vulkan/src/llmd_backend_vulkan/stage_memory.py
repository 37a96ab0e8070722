"""Everything that a stage keeps in the device's memory besides weights."""

from __future__ import annotations

from collections.abc import Mapping

from llmd.api import Program, StageLimits
from llmd_backend_vulkan.context import Context, stride_of
from llmd_backend_vulkan.kv_memory import KVPool
from llmd_backend_vulkan.memory import ALIGNMENT, Arena
from llmd_backend_vulkan.ops.adapt import CHANGES, adapt_words, change_places, changes_of
from llmd_backend_vulkan.ops.attention import SPANS, scratch_words
from llmd_backend_vulkan.ops.experts import experts_words
from llmd_backend_vulkan.ops.head_linear import head_linear_words
from llmd_backend_vulkan.ops.indexer import indexer_words
from llmd_backend_vulkan.ops.router import router_words
from llmd_backend_vulkan.ops.states import states_words
from llmd_backend_vulkan.ops.streams import streams_words
from llmd_backend_vulkan.outputs import Outputs
from llmd_backend_vulkan.outputs.layout import OutputsLayout
from llmd_backend_vulkan.outputs.outputs import device_words
from llmd_backend_vulkan.step_memory import StepLayout
from llmd_backend_vulkan.streaming import Placed


class StageMemory:
    """KV pools, and one region with the arrays of a step, slots, scratch and output rows.

    Raises:
        MemoryBudgetError: there is not enough memory.
    """

    def __init__(
        self, arena: Arena, program: Program, blocks: Mapping[int, int], limits: StageLimits
    ) -> None:
        self._arena = arena
        self._program = program
        self._limits = limits
        places, end = _places(program, limits)
        self.work = arena.take(end)
        """Everything besides pools."""
        arena.fill_zero(self.work)
        self._places = {name: self.work.at + at for name, at in places.items()}
        self._layouts: dict[int, StepLayout] = {}
        self._changes = change_places(program)
        self.pools = {
            group.id: KVPool(arena, group, blocks[group.id], limits.kv_dtype)
            for group in program.groups
            if group.layers
        }

    @staticmethod
    def num_words(program: Program, limits: StageLimits) -> int:
        """Return the words that it takes besides pools."""
        return _places(program, limits)[1]

    def outputs(self, place: int) -> Outputs:
        """Return the output rows of a ticket; take their memory of the host."""
        layout = OutputsLayout(self._program.vocab_size, self._limits)
        at = self._places[f"outputs {place}"] - self.work.at
        return Outputs(self._arena, self.work, at, layout, keeps_times=self._limits.spans)

    def slot(self, index: int) -> int:
        """Return where a slot is."""
        return self._places[f"slot {index}"]

    def layout(self, bucket: int) -> StepLayout:
        """Return the places of the arrays of a step."""
        if bucket not in self._layouts:
            self._layouts[bucket] = StepLayout.of(self._program, self._limits, bucket)
        return self._layouts[bucket]

    def place_changes(self, weights: Placed) -> None:
        """Tell the device what adapters change, and wait; ``weights`` are those that the body reads."""
        if self._changes:
            words = changes_of(self.context(self._limits.max_rows, 0, weights))
            self._arena.upload(self.work, self._places[CHANGES] - self.work.at, words)

    def context(self, bucket: int, spans: int, weights: Placed, *, adapted: bool = False) -> Context:
        """Return what the dispatches of a bucket need; ``adapted``: rows of its steps have adapters."""
        return Context(
            self._program,
            self._limits,
            self.layout(bucket),
            self.work.buffer,
            self._places["step"],
            [self.slot(index) for index in range(len(self._program.slot_widths))],
            {name: self._places[name] for name in _scratch(self._program, self._limits)},
            spans,
            weights.matrices,
            weights.vectors,
            self.pools,
            self._changes,
            adapted,
        )


def _scratch(program: Program, limits: StageLimits) -> Mapping[str, int]:
    """Return the words of the memory that ops use while they run, by name."""
    return {
        SPANS: scratch_words(program, limits.max_rows),
        **router_words(program, limits),
        **experts_words(program, limits),
        **states_words(program, limits),
        **head_linear_words(program, limits),
        **adapt_words(program, limits),
        **indexer_words(program, limits),
        **streams_words(program, limits),
    }


def _places(program: Program, limits: StageLimits) -> tuple[Mapping[str, int], int]:
    """Return the place of each part of the region, and the end of the last one."""
    sizes = {
        "step": StepLayout.of(program, limits, limits.max_rows).end,
        **{f"slot {i}": limits.max_rows * stride_of(width) for i, width in enumerate(program.slot_widths)},
        **_scratch(program, limits),
        **{f"outputs {place}": device_words(program, limits) for place in range(limits.tickets)},
    }
    places, end = {}, 0
    for name, size in sizes.items():
        places[name] = end
        end += -(-size // ALIGNMENT) * ALIGNMENT
    return places, end
