"""Loads the weights once, in the layout of their kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llmd.api import (
    KVDtype,
    MemoryBudgetError,
    Program,
    Progress,
    StageLimits,
    TensorSource,
    kv_block_bytes,
    step_buffer_bytes,
)
from llmd.api.machine import available_bytes
from llmd_backend_example.kernels import KERNELS
from llmd_backend_example.kernels.kernel import Kernel
from llmd_backend_example.stage import ExampleStage


def load_parts(program: Program, tensors: TensorSource, progress: Progress) -> ExampleParts:
    """Read every weight of the program and make a kernel for each op."""
    weights = []
    done, total = 0, sum(weight.num_bytes for weight in program.weights)
    for weight in program.weights:
        weights.append(tensors.read(weight))
        done += weight.num_bytes
        progress(done, total)
    ops = [slotted for instruction in program.instructions for slotted in instruction.ops]
    kernels = []
    for slotted in ops:
        of_op = [None if index is None else weights[index] for index in slotted.weights]
        load_kernel = KERNELS[slotted.op.kind]
        kernels.append(load_kernel(slotted, of_op, program))
    return ExampleParts(program, kernels)


class ExampleParts:
    """See `llmd.api.LoadedWeights`."""

    def __init__(self, program: Program, kernels: Sequence[Kernel]) -> None:
        self._program = program
        self._kernels = kernels

    def kv_bytes(self, group: int, kv_dtype: KVDtype) -> int:
        """Return the bytes of a block: this device needs no padding."""
        return kv_block_bytes(self._program.groups[group], kv_dtype)

    def step_bytes(self, limits: StageLimits) -> int:
        """Return the bytes of the slots and the logits: this device has no other step buffers."""
        return step_buffer_bytes(self._program, limits)

    def stage(self, blocks: Mapping[int, int], limits: StageLimits) -> ExampleStage:
        """Allocate the KV pools. Stages share only the weights."""
        needed = sum(self.kv_bytes(group, limits.kv_dtype) * count for group, count in blocks.items())
        if needed > (free := available_bytes()):
            raise MemoryBudgetError(
                f"the KV cache needs {needed} bytes, but {free} are free",
                hint="lower --kv-memory, --slots or --max-ctx",
            )
        return ExampleStage(self._program, self._kernels, blocks, limits)

    def close(self) -> None:
        """Free the weights by dropping the kernels that hold them."""
        self._kernels = ()
