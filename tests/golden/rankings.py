"""What transformers said of the documents of the tiny reranker."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.golden.checkpoint import read_safetensors, write_safetensors
from tests.golden.expected import DIRECTORY
from tests.serving.reranker import CASE

PATH = DIRECTORY / f"{CASE.name}.safetensors"


@dataclass(frozen=True)
class ExpectedRanking:
    """For each document ``log_odds`` float32 ``[n]`` of the true token against the false one, and ``lengths`` int32 ``[n]``
    of the prompts in tokens. ``versions`` names the programs that computed them.
    """

    log_odds: NDArray[np.float32]
    lengths: NDArray[np.int32]
    versions: dict[str, str]

    @property
    def relevance(self) -> list[float]:
        """The probability of the true token among both."""
        return [1 / (1 + math.exp(-odds)) for odds in self.log_odds.tolist()]


def read_ranking() -> ExpectedRanking:
    """The committed expectation."""
    tensors, versions = read_safetensors(PATH)
    return ExpectedRanking(
        np.asarray(tensors["log_odds"], np.float32), np.asarray(tensors["lengths"], np.int32), versions
    )


def write_ranking(expected: ExpectedRanking) -> None:
    """Commit an expectation; the same values give the same bytes."""
    tensors = {"log_odds": expected.log_odds, "lengths": expected.lengths}
    write_safetensors(PATH, tensors, expected.versions)
