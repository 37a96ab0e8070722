"""Bugs that are planted in the choice of positions, and in attention to them, are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.builtin.architectures import deepseek_v32
from tests.cuda.simulated import NEEDS_COMPILER
from tests.cuda.test_planted_bugs import STEPS, assert_bug_is_found
from tests.golden.models.catalog import tiny_model

pytestmark = NEEDS_COMPILER

WAIT = "wait_for_previous_kernel();"
CHOOSERS_WAIT = f"exists = row < args.step.counts[0];\n    {WAIT}"
LIST_WAIT = f"if (CHOSEN) {WAIT}  // which"
PLAN = deepseek_v32.plan(tiny_model("deepseek-v32-odd").config, 64)
"""Seven positions are chosen."""
BLOCKS = {0: 8, 1: 8}
BUGS = {
    "queries before they are split": ("indexer.cu", "queries);\n    block_barrier();", "queries);"),
    "no maximum": ("indexer.cu", "fmaxf(of[i % 2], 0.0f)", "of[i % 2]"),
    "keys of another block": ("indexer.cu", "table[min(first + n, last)]", "table[0]"),
    "heads without a weight": ("indexer.cu", "lanes = 4; lanes < WARP", "lanes = 8; lanes < WARP"),
    "a digit of other scores": ("indexer.cu", "(order & known) == lowest)", "true)"),
    "too many are skipped": ("indexer.cu", "choice.equal - left, out", "choice.equal, out"),
    "missing wait for scores": ("indexer.cu", CHOOSERS_WAIT, CHOOSERS_WAIT.replace(WAIT, "")),
    "missing wait for positions": ("attention.cu", LIST_WAIT, LIST_WAIT.replace("if (CHOSEN) " + WAIT, "")),
    "places that are read too early": (
        "attention_item.cuh",
        "0) * 2;\n    block_barrier();",
        "0) * 2;",
    ),
    "the list of the first row": ("attention_item.cuh", "(i64)item.row * args.top_k", "0"),
    "vectors of another position": ("attention_item.cuh", "key_index(id % VECTORS, 0)", "0"),
}
"""File, old text and new one."""


@pytest.mark.parametrize("bug", BUGS)
def test_bugs_of_chosen_positions(tmp_path: Path, bug: str) -> None:
    assert_bug_is_found(tmp_path, BUGS[bug], PLAN, BLOCKS, STEPS)
