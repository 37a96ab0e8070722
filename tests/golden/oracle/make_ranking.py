"""Computes what a tiny reranker says in transformers; compares it with the committed file, or writes it.

    python -m tests.golden.oracle.make_ranking [--write]

The log of the odds of "y" against "n" behind each prompt, which transformers' own template and tokenizer make.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers

from tests.golden.oracle.transformers_model import build, logits
from tests.golden.rankings import ExpectedRanking, read_ranking, write_ranking
from tests.serving.reranker import (
    CASE,
    DOCUMENTS,
    FALSE_ID,
    INSTRUCTION,
    QUERY,
    TRUE_ID,
    write_reranker,
)

TOLERANCE = 1e-5


def compute() -> ExpectedRanking:
    model = build(CASE)
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = transformers.AutoTokenizer.from_pretrained(write_reranker(Path(folder)))
    odds, lengths = [], []
    for document in DOCUMENTS:
        messages = [
            {"role": "system", "content": INSTRUCTION},
            {"role": "query", "content": QUERY},
            {"role": "document", "content": document},
        ]
        ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, mark="<think>")
        row = logits(model, ids)[-1].astype(np.float64)
        odds.append(row[TRUE_ID] - row[FALSE_ID])
        lengths.append(len(ids))
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    return ExpectedRanking(np.array(odds, np.float32), np.array(lengths, np.int32), versions)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the file instead of comparing")
    torch.set_num_threads(1)
    computed = compute()
    print(f"{CASE.name:32} log odds {computed.log_odds.tolist()}, lengths {computed.lengths.tolist()}")
    if parser.parse_args().write:
        write_ranking(computed)
        return 0
    committed = read_ranking()
    equal = np.array_equal(computed.lengths, committed.lengths)
    return 0 if equal and np.allclose(computed.log_odds, committed.log_odds, atol=TOLERANCE) else 1


if __name__ == "__main__":
    sys.exit(main())
