"""What transformers answered: the committed expectations, one file for each tiny model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.golden.checkpoint import read_safetensors, write_safetensors

DIRECTORY = Path(__file__).parent / "expectations"


@dataclass(frozen=True)
class Expected:
    """``tokens`` int32 ``[64]`` continue the prompt greedily; ``logits`` float32 ``[n, vocab]`` are those of
    prompt + tokens at ``positions`` int32 ``[n]``, all in float32 arithmetic on the stored weights.

    ``versions`` names the programs that computed them.
    """

    positions: NDArray[np.int32]
    logits: NDArray[np.float32]
    tokens: NDArray[np.int32]
    versions: dict[str, str]


def read_expected(name: str) -> Expected:
    """The committed expectation of a case."""
    tensors, versions = read_safetensors(DIRECTORY / f"{name}.safetensors")
    return Expected(
        np.asarray(tensors["positions"], np.int32),
        np.asarray(tensors["logits"], np.float32),
        np.asarray(tensors["tokens"], np.int32),
        versions,
    )


def write_expected(name: str, expected: Expected) -> None:
    """Commit an expectation; the same values give the same bytes."""
    tensors = {
        "positions": expected.positions,
        "logits": expected.logits,
        "tokens": expected.tokens,
    }
    write_safetensors(DIRECTORY / f"{name}.safetensors", tensors, expected.versions)


def read_pooled(name: str) -> tuple[dict[str, NDArray[np.float32]], dict[str, str]]:
    """The vectors of a model that embeds, float32 ``[texts, hidden]`` for each pooling,
    and what computed them.
    """
    tensors, versions = read_safetensors(DIRECTORY / f"{name}.safetensors")
    return {pooling: np.asarray(rows, np.float32) for pooling, rows in tensors.items()}, versions


def write_pooled(name: str, vectors: dict[str, NDArray[np.float32]], versions: dict[str, str]) -> None:
    """Commit the vectors of a model that embeds."""
    write_safetensors(DIRECTORY / f"{name}.safetensors", dict(vectors), versions)


def nmse(actual: NDArray[np.floating], expected: NDArray[np.floating]) -> float:
    """Normalised mean square error, ``sum((a - e)^2) / sum(e^2)``, in float64."""
    reference = np.asarray(expected, np.float64)
    error = np.asarray(actual, np.float64) - reference
    return float(np.sum(error**2) / np.sum(reference**2))
