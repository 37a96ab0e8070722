"""The memory of what rows are turned into before they change states."""

from __future__ import annotations

import msgspec

from llmd.api import StageLimits
from llmd_backend_cuda.ops.state_rows import StateRowsSizes
from tests.cuda.state_bench import Bench
from tests.plugins.backend_cuda.ops import test_gated_delta, test_state_space


def test_rows_have_memory_for_the_largest_op() -> None:
    limits = StageLimits(10, 1, 1)
    for op in (test_gated_delta.OPS["grouped"], test_state_space.OPS["grouped"]):
        program = Bench(op).one.program
        assert StateRowsSizes.of(program, limits).num_bytes == 40 * (op.sizes.width + 4 + 4)
        without = msgspec.structs.replace(program, instructions=())
        assert StateRowsSizes.of(without, limits).num_bytes == 0
