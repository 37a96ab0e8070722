"""Computes what tiny rerankers say in transformers; compares it with the committed files, or writes them.

    python -m tests.golden.oracle.make_ranking [--write]

For one that generates, the log of the odds of "y" against "n" behind each prompt, which transformers' own
template makes; for cross-encoders, the logit of each pair, which transformers' own tokenizer joins.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import transformers

from tests.golden.models.embedding import SCORERS
from tests.golden.models.tiny import TinyModel
from tests.golden.oracle import pooled, transformers_model
from tests.golden.rankings import ExpectedRanking, read_ranking, write_ranking
from tests.serving.encoder import write_encoder
from tests.serving.reranker import (
    CASE,
    DOCUMENTS,
    FALSE_ID,
    INSTRUCTION,
    QUERY,
    SHORT_DOCUMENTS,
    TRUE_ID,
    write_reranker,
)

TOLERANCE = 1e-5
Judged = tuple[float, int]
"""Log odds of a document, and the length of its prompt."""


def judged_by_answers(directory: Path) -> Iterator[Judged]:
    """Each document in a conversation whose next token is looked at."""
    model = transformers_model.build(CASE)
    tokenizer = transformers.AutoTokenizer.from_pretrained(write_reranker(directory))
    for document in DOCUMENTS:
        messages = [
            {"role": "system", "content": INSTRUCTION},
            {"role": "query", "content": QUERY},
            {"role": "document", "content": document},
        ]
        ids = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_dict=False, mark="<think>"
        )
        row = transformers_model.logits(model, ids)[-1].astype(np.float64)
        yield row[TRUE_ID] - row[FALSE_ID], len(ids)


@torch.no_grad()
def judged_by_encoder(case: TinyModel, directory: Path) -> Iterator[Judged]:
    """Each document joined with the query."""
    model = pooled.build(case)
    tokenizer = transformers.AutoTokenizer.from_pretrained(write_encoder(case, directory))
    for document in SHORT_DOCUMENTS:
        # As a batch, which keeps a second text that is empty; so does sentence-transformers.
        inputs = tokenizer([QUERY], [document], return_tensors="pt")
        yield model(**inputs).logits.item(), inputs["input_ids"].shape[1]


def compute(case: TinyModel) -> ExpectedRanking:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        judged = judged_by_answers(directory) if case is CASE else judged_by_encoder(case, directory)
        odds, lengths = zip(*judged, strict=True)
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    return ExpectedRanking(np.array(odds, np.float32), np.array(lengths, np.int32), versions)


def same(case: TinyModel, computed: ExpectedRanking) -> bool:
    """Compare with the committed file, and say how it went."""
    committed = read_ranking(case)
    error = float(np.abs(computed.log_odds - committed.log_odds).max())
    equal = np.array_equal(computed.lengths, committed.lengths)
    print(f"{case.name:32} log odds differ by {error:.1e}, lengths {'equal' if equal else 'DIFFER'}")
    return equal and error <= TOLERANCE


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the files instead of comparing")
    writes = parser.parse_args().write
    torch.set_num_threads(1)
    good = True
    for case in (CASE, *SCORERS):
        computed = compute(case)
        if writes:
            write_ranking(case, computed)
        else:
            good &= same(case, computed)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
