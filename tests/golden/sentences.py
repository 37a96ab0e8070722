"""Texts that sentence-transformers has embedded with the model that tests serve:
whole directories, not only tensors.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.golden.checkpoint import read_safetensors, write_safetensors
from tests.golden.expected import DIRECTORY
from tests.serving.model import write_embedding_model

TEXTS = (
    "Hello",
    "Good day, world!",
    "x" * 300,
    "<|im_end|> in the middle <s>",
    "naïve café 👩‍👩‍👧",
    "UPPER and lower",
)
NAME = "sentences"


@dataclass(frozen=True)
class SentenceCase:
    """The settings in the files next to a model, and the fields of a request for its vectors."""

    name: str
    pooling: str
    normalizes: bool = True
    dimensions: int | None = None


CASES = (
    SentenceCase("last", "last"),
    SentenceCase("last-nested", "last", dimensions=16),
    SentenceCase("mean-raw", "mean", normalizes=False),
    SentenceCase("weighted", "weighted_mean"),
)


def write_case(case: SentenceCase, directory: Path) -> Path:
    """Write the model of a case."""
    return write_embedding_model(directory, pooling=case.pooling, normalizes=case.normalizes)


def read_sentences() -> tuple[dict[str, NDArray[np.float32]], dict[str, str]]:
    """The committed vectors of each case, float32 ``[texts, dimensions]``, and what computed them."""
    tensors, versions = read_safetensors(DIRECTORY / f"{NAME}.safetensors")
    return {name: np.asarray(rows, np.float32) for name, rows in tensors.items()}, versions


def write_sentences(vectors: dict[str, NDArray[np.float32]], versions: dict[str, str]) -> None:
    """Commit the vectors of all cases."""
    write_safetensors(DIRECTORY / f"{NAME}.safetensors", dict(vectors), versions)
