"""Embeds texts with sentence-transformers; compares its vectors with the committed ones, or writes them.

    python -m tests.golden.oracle.make_sentences [--write]

Exit status 1 where they differ by more than the arithmetic of another machine.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import sentence_transformers
import torch
import transformers
from numpy.typing import NDArray

from tests.golden.expected import nmse
from tests.golden.oracle.make_oracle import SAME_NMSE
from tests.golden.sentences import CASES, TEXTS, SentenceCase, read_sentences, write_case, write_sentences


def compute(case: SentenceCase, directory: Path) -> NDArray[np.float32]:
    """The vectors of a case, each text by itself."""
    model = sentence_transformers.SentenceTransformer(
        str(write_case(case, directory)), device="cpu", truncate_dim=case.dimensions
    )
    vectors = model.encode(
        list(TEXTS), batch_size=1, normalize_embeddings=case.dimensions is not None, show_progress_bar=False
    )
    return np.asarray(vectors, np.float32)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the file instead of comparing")
    writes = parser.parse_args().write
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as root:
        found = {case.name: compute(case, Path(root) / case.name) for case in CASES}
    if writes:
        versions = {
            module.__name__: module.__version__ for module in (sentence_transformers, torch, transformers)
        }
        write_sentences(found, versions)
        return 0
    errors = {name: nmse(vectors, read_sentences()[0][name]) for name, vectors in found.items()}
    for name, error in errors.items():
        print(f"{name:32} NMSE {error:.1e}")
    return 0 if max(errors.values()) <= SAME_NMSE else 1


if __name__ == "__main__":
    sys.exit(main())
