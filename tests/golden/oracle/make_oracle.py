"""Computes what every tiny model answers in transformers;
compares it with the committed files, or writes them.

    python -m tests.golden.oracle.make_oracle [--write] [CASE...]

Exit status 1 where a committed file differs by more than the arithmetic of another machine.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from tests.golden.adapters import ADAPTERS
from tests.golden.expected import (
    Expected,
    nmse,
    read_expected,
    read_pooled,
    write_expected,
    write_pooled,
)
from tests.golden.models import embedding
from tests.golden.models.catalog import CASES
from tests.golden.models.fp8 import FP8_CASES
from tests.golden.models.nvfp4 import NVFP4_CASES
from tests.golden.models.routing import ROUTING_CASES
from tests.golden.models.tiny import NUM_GREEDY, PROMPT_LEN, TinyModel
from tests.golden.oracle.merged_adapter import merged
from tests.golden.oracle.pooled import pooled, scored
from tests.golden.oracle.rwkv7_model import Rwkv7
from tests.golden.oracle.transformers_model import build, logits
from tests.golden.rwkv_tensors import RWKV7

Run = Callable[[list[int]], NDArray[np.float32]]

POSITIONS = (0, 1, 7, 16, 31, PROMPT_LEN - 1, 63, 81, PROMPT_LEN + NUM_GREEDY - 1)
SAME_NMSE = 1e-11
MIN_GAP = 3e-3
"""Smallest distance of the two best logits of a greedy step, in standard deviations of that row."""


def compute(case: TinyModel) -> tuple[Expected, float]:
    """Run a case; also the narrowest top-2 gap of its greedy steps."""
    return answers(runner(case), case.prompt)


def answers(run: Run, prompt: list[int]) -> tuple[Expected, float]:
    """Run a model; also the narrowest top-2 gap of its greedy steps."""
    ids = prompt
    gaps = []
    for _ in range(NUM_GREEDY):
        row = run(ids)[-1]
        second, best = np.sort(row)[-2:]
        gaps.append((best - second) / row.std())
        ids = [*ids, int(row.argmax())]
    expected = Expected(
        positions=np.array(POSITIONS, np.int32),
        logits=run(ids)[list(POSITIONS)],
        tokens=np.array(ids[PROMPT_LEN:], np.int32),
        versions={"torch": torch.__version__, "transformers": transformers.__version__},
    )
    return expected, float(min(gaps))


def runner(case: TinyModel) -> Run:
    """What computes the logits of a sequence: transformers, if it has the family."""
    return Rwkv7(case).logits if case.config["model_type"] == RWKV7 else partial(logits, build(case))


def same(name: str, computed: Expected) -> bool:
    """Compare with the committed file, and say how it went."""
    committed = read_expected(name)
    error = nmse(computed.logits, committed.logits)
    equal = np.array_equal(computed.tokens, committed.tokens)
    print(f"{name:32} NMSE {error:.1e}, tokens {'equal' if equal else 'DIFFER'}")
    return equal and error <= SAME_NMSE


def write(name: str, computed: Expected, gap: float) -> bool:
    """Write the file, unless a greedy step is too close to call; then the case needs another seed."""
    distinct = len(set(computed.tokens.tolist()))
    print(f"{name:32} narrowest gap {gap:.4f}, {distinct} different tokens")
    if gap < MIN_GAP:
        return False
    write_expected(name, computed)
    return True


def pool(case: TinyModel, *, writes: bool) -> bool:
    """Compare what a model that embeds or scores answers with its committed file, or write it."""
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    computed = scored(case) if case in embedding.SCORERS else pooled(case)
    if writes:
        write_pooled(case.name, computed, versions)
        return True
    committed, _ = read_pooled(case.name)
    errors = {name: nmse(rows, committed[name]) for name, rows in computed.items()}
    print(f"{case.name:32} NMSE {max(errors.values()):.1e}")
    return max(errors.values()) <= SAME_NMSE


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the files instead of comparing")
    parser.add_argument("cases", nargs="*", help="names of tiny models (default: all)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    good = True
    for case in (*CASES, *FP8_CASES, *NVFP4_CASES, *ROUTING_CASES):
        if not args.cases or case.name in args.cases:
            computed, gap = compute(case)
            good &= write(case.name, computed, gap) if args.write else same(case.name, computed)
    for adapter in ADAPTERS:
        if not args.cases or adapter.name in args.cases:
            computed, gap = answers(partial(logits, merged(adapter)), adapter.base.prompt)
            good &= write(adapter.name, computed, gap) if args.write else same(adapter.name, computed)
    for case in (*embedding.CASES, *embedding.SCORERS):
        if not args.cases or case.name in args.cases:
            good &= pool(case, writes=args.write)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
