from __future__ import annotations

from llmd.api import KVGroup
from llmd.api.messages import ExpertReads
from llmd.api.step import BLOCK_LEN
from llmd.engine.step_reads import KVReads, dense_reads, expert_reads
from llmd.models.lowering import lower
from llmd.testing.plans import TinyModel
from tests.daemon.models.gguf.test_config_keys import plan

FULL = KVGroup(0, None, 1, 8, (0,))
WINDOW = KVGroup(1, 24, 1, 8, (1,))
STATE = KVGroup(2, None, 0, 0, (2,), kind="state", state_bytes=8)


def test_a_step_reads_all_weights_but_the_table_of_tokens() -> None:
    plan = TinyModel().plan()
    program = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32")
    table = max(
        program.weights[index].num_bytes
        for slotted in program.ops
        for index in slotted.weights
        if slotted.op.kind == "embed" and index is not None
    )
    assert dense_reads(program) == sum(weight.num_bytes for weight in program.weights) - table


def test_a_step_reads_the_experts_that_its_rows_are_expected_to_use() -> None:
    mixture = plan("glm4-moe")
    program = lower(mixture, 0, len(mixture.parts), format_of=lambda _kind, _ref: "f32")
    stack = 4 * 8 * 32 * 64
    (experts,) = expert_reads(program)
    assert experts == ExpertReads(2 * 3 * stack, 8, 3)
    assert experts.bytes_read(1) == experts.num_bytes * 3 / 8
    assert experts.bytes_read(2) == experts.num_bytes * (1 - (5 / 8) ** 2)
    table = 4 * 131 * 64
    assert dense_reads(program) == sum(one.num_bytes for one in program.weights) - table - experts.num_bytes


def test_a_row_reads_all_tokens_or_a_window_of_them_and_its_state() -> None:
    reads = KVReads.of((FULL, WINDOW, STATE), {0: 3 * BLOCK_LEN, 1: 5 * BLOCK_LEN, 2: 70}.__getitem__)
    assert reads.of_rows([10, 100]) == 3 * (10 + 100) + 5 * (10 + 24) + 2 * 70
    assert reads.of_rows([]) == 0
