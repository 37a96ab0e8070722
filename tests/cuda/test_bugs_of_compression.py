"""Bugs that are planted in compressed attention and in hyper-connections are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.builtin.architectures import deepseek_v4
from tests.cuda.simulated import NEEDS_COMPILER, step_of
from tests.cuda.test_planted_bugs import assert_bug_is_found
from tests.golden.models.catalog import tiny_model

pytestmark = NEEDS_COMPILER

WAIT = "wait_for_previous_kernel();\n    if (row >= args.step.counts[0] || element >= args.dim) return;"
PLAN = deepseek_v4.plan(tiny_model("deepseek-v4-odd").config, 64)
"""A vector stands for 2 tokens, of which nine are chosen, or for 32."""
BLOCKS = dict.fromkeys(range(len(PLAN.groups)), 5)
TABLES = [[[1, 0]] if group.block_tokens == 32 else [[3, 0, 4, 1]] for group in PLAN.groups]
STEPS = [step_of([chunk], *TABLES) for chunk in ((0, 20), (20, 19), (39, 1), (40, 20))]
BUGS = {
    "missing wait for parts": ("compress.cu", WAIT, WAIT.partition("\n")[2]),
    "tokens before a vector": ("compress.cu", "args.overlap && own > 0 ? own - args.stride : own", "own"),
    "elements of the other half": ("compress.cu", "args.overlap ? args.dim + element : element", "element"),
    "bias of another token": ("compress.cu", "(i64)(token % args.stride) * args.width", "0"),
    "vectors that are not complete": (
        "kv_layout.cuh",
        "(position + 1) / STRIDE - 1",
        "STRIDE > 2 ? position / STRIDE : (position + 1) / STRIDE - 1",
    ),
    "vectors in one place": ("store_kv.cu", "is_key, number % VECTORS", "is_key, number % VECTORS / 2"),
    "vectors of another place": ("attention_item.cuh", "* VECTORS + number % VECTORS", "* VECTORS"),
    "keys of another place": ("indexer.cu", "min(number, seen - 1)", "0"),
    "a result without its share": ("merge_attention.cu", "(of_b / both)", "of_b"),
    "sums without the largest score": (
        "attention_item.cuh",
        "fmaf(total.reference, LN_2, logf(sum))",
        "logf(sum)",
    ),
    "sums without a sink": ("attention_item.cuh", "if (!args.sinks) return total.sum;", "return total.sum;"),
    "missing barrier of products": ("streams.cu", "block_barrier();", ""),
    "squares of another row": ("streams.cu", "products[args.count] /", "products[0] /"),
    "sums of some rows": ("streams.cu", "lanes < MOST_STREAMS", "lanes < 2"),
    "rows as columns": ("streams.cu", "mix[i * STREAMS + k]", "mix[k * STREAMS + i]"),
    "positions of last tokens": ("rope.cu", "own - own % args.stride", "own"),
}
"""File, old text and new one."""


@pytest.mark.parametrize("bug", BUGS)
def test_bugs_of_compressed_attention_and_streams(tmp_path: Path, bug: str) -> None:
    assert_bug_is_found(tmp_path, BUGS[bug], PLAN, BLOCKS, STEPS)
