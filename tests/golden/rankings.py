"""What transformers said of documents, for each tiny reranker: one that generates, and cross-encoders."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.golden.checkpoint import read_safetensors, write_safetensors
from tests.golden.expected import DIRECTORY
from tests.golden.models.tiny import TinyModel


@dataclass(frozen=True)
class ExpectedRanking:
    """For each document ``log_odds`` float32 ``[n]`` of its being relevant, and ``lengths`` int32 ``[n]`` of
    the prompts in tokens. ``versions`` names the programs that computed them.
    """

    log_odds: NDArray[np.float32]
    lengths: NDArray[np.int32]
    versions: dict[str, str]

    @property
    def relevance(self) -> list[float]:
        """The probabilities."""
        return [1 / (1 + math.exp(-odds)) for odds in self.log_odds.tolist()]


def read_ranking(case: TinyModel) -> ExpectedRanking:
    """The committed expectation."""
    tensors, versions = read_safetensors(DIRECTORY / f"{case.name}-ranking.safetensors")
    return ExpectedRanking(
        np.asarray(tensors["log_odds"], np.float32), np.asarray(tensors["lengths"], np.int32), versions
    )


def write_ranking(case: TinyModel, expected: ExpectedRanking) -> None:
    """Commit an expectation; the same values give the same bytes."""
    tensors = {"log_odds": expected.log_odds, "lengths": expected.lengths}
    write_safetensors(DIRECTORY / f"{case.name}-ranking.safetensors", tensors, expected.versions)
