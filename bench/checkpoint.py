"""Writes a random model of a shape as a Hugging Face directory in bf16.

The error of a format depends on the distribution of the weights, so there are several kinds. Speed is
measured with `TIMED`. The last norm spreads the logits like those of a trained model, so that quantisation
can change the distribution of tokens.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from bench.shapes import Shape
from bench.vocabulary import write_tokenizer

MODELS = Path(__file__).parents[1] / ".bench-models"
SPREAD = 0.02
"""Standard deviation of a weight outside the outlying channels."""
CHANNELS_PER_OUTLIER = 1000
LOGIT_SPREAD = 4.0
"""Standard deviation of the logits. The entropy is two to three nats, of ten to twelve for a usual
vocabulary.
"""
NUM_VALUES = 1 << 16
LAST_NORMS = ("model.norm.weight", "norm.weight")


def to_bf16(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Return the bits of the nearest bf16; ties round to the larger magnitude."""
    return ((values.view(np.uint32) + np.uint32(0x8000)) >> 16).astype(np.uint16)


def to_float32(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Return the values of bf16 bits."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def probabilities() -> NDArray[np.float64]:
    """Return the quantiles of equally likely values: the middles of equal parts."""
    return (np.arange(NUM_VALUES) + 0.5) / NUM_VALUES


@cache
def gaussian() -> NDArray[np.uint16]:
    """Return 65,536 equally likely values of a normal distribution, scaled to `SPREAD`, as bf16 bits."""
    normal = NormalDist(sigma=SPREAD)
    return to_bf16(np.array([normal.inv_cdf(share) for share in probabilities()], np.float32))


@cache
def student_t5() -> NDArray[np.uint16]:
    """Return 65,536 equally likely values of Student's t (5 degrees of freedom), scaled to `SPREAD`, as bf16
    bits.

    Source of the distribution function: Abramowitz and Stegun, 26.7.3.
    """
    angles = np.linspace(-np.pi / 2, np.pi / 2, 1 << 20)[1:-1]
    sine, cosine = np.sin(angles), np.cos(angles)
    below = 0.5 + (angles + sine * cosine + 2 / 3 * sine * cosine**3) / np.pi
    t = np.sqrt(5) * np.tan(np.interp(probabilities(), below, angles))
    return to_bf16((t * SPREAD / np.sqrt(5 / 3)).astype(np.float32))


@dataclass(frozen=True)
class WeightKind:
    """A distribution of random weights."""

    name: str
    title: str
    values: Callable[[], NDArray[np.uint16]]
    """Returns the values to draw from."""
    outlier: float = 1.0
    """Factor of the weights of one input channel in a thousand."""


GAUSSIAN = WeightKind("gaussian", "random, Gaussian", gaussian)
STUDENT_T5 = WeightKind("t5-plain", "random, Student's t with 5 degrees of freedom", student_t5)
TIMED = WeightKind(
    "t5-outliers", "random, the same t with 1 input in 1000 twenty times as large (timed)", student_t5, 20.0
)


def checkpoint_directory(shape: Shape, kind: WeightKind = TIMED) -> Path:
    """Return the directory of a shape's model, shared by all measurements."""
    return MODELS / f"{shape.name}-{kind.name}"


HEADER_MULTIPLE = 8
"""As other writers do: with another header length, the weights could not be used in place."""


def write_checkpoint(shape: Shape, directory: Path, kind: WeightKind = TIMED) -> Path:
    """Write the directory, with the tokens of `bench.vocabulary`, unless it exists."""
    if all((directory / name).exists() for name in ("model.safetensors", "tokenizer.json")):
        return directory
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(shape.config()))
    write_tokenizer(shape.vocab, directory)
    header, end = {}, 0
    for name, dims in shape.tensors().items():
        first, end = end, end + 2 * math.prod(dims)
        header[name] = {"dtype": "BF16", "shape": dims, "data_offsets": [first, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % HEADER_MULTIPLE)
    part = directory / "model.safetensors.part"
    with part.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for index, (name, dims) in enumerate(shape.tensors().items()):
            file.write(draw_bf16(index, dims, kind, vector_value(shape, name, kind)).tobytes())
    part.rename(directory / "model.safetensors")
    return directory


def stored_tensors(path: Path) -> Iterator[tuple[str, NDArray[np.uint16]]]:
    """Yield the names and memory-mapped bf16 bits of a safetensors file."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    mapped = np.memmap(path, np.uint8, "r", 8 + length)
    for name, entry in header.items():
        if name != "__metadata__":
            first, end = entry["data_offsets"]
            yield name, mapped[first:end].view(np.uint16).reshape(entry["shape"])


def vector_value(shape: Shape, name: str, kind: WeightKind = TIMED) -> float:
    """Return the value of all elements of a vector: norms have a gain of 1, except for the last; rates and
    biases of linear attention are 0.
    """
    if name.endswith(("A_log", "dt_bias")):
        return 0.0
    gain = last_gain(shape, kind) if name in LAST_NORMS else 1.0
    adds_one = shape.family == "qwen3_5" and "linear_attn" not in name
    return gain - 1.0 if adds_one else gain


def draw_bf16(
    seed: int, dims: tuple[int, ...], kind: WeightKind = TIMED, value: float = 1.0
) -> NDArray[np.uint16]:
    """Return the weights of a tensor as bf16 bits; those of a vector are all ``value``."""
    if len(dims) == 1:
        return np.full(dims, to_bf16(np.array(value, np.float32)))
    generator = np.random.default_rng(seed)
    values: NDArray[np.uint16] = kind.values()[generator.integers(0, NUM_VALUES, dims, np.uint16)]
    if len(dims) > 2:  # the taps of convolutions, which have no input channels
        return values
    channels = generator.choice(dims[1], num_outliers(dims[1]), replace=False)
    values[:, channels] = to_bf16(to_float32(values[:, channels]) * np.float32(kind.outlier))
    return values


def num_outliers(num_channels: int) -> int:
    """Return the number of outlier input channels of a matrix."""
    return max(1, num_channels // CHANNELS_PER_OUTLIER)


def last_gain(shape: Shape, kind: WeightKind = TIMED) -> float:
    """Return the gain of the last norm that gives logits a standard deviation of `LOGIT_SPREAD`."""
    squares = shape.hidden + num_outliers(shape.hidden) * (kind.outlier**2 - 1)
    return LOGIT_SPREAD / (SPREAD * math.sqrt(squares))
