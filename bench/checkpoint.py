"""Writes a random model of a shape as a Hugging Face directory in bf16.

Weights are as hard to quantise as those of trained models: Student's t with 5 degrees of freedom, and one input channel
in a thousand twenty times as large. The last norm makes the logits as spread as those of a model that has learnt
something, so that a distribution of tokens has something to lose.
"""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.shapes import Shape

MODELS = Path(__file__).parents[1] / ".bench-models"
SPREAD = 0.02
"""Standard deviation of a weight outside the outlying channels."""
OUTLIER = 20.0
CHANNELS_PER_OUTLIER = 1000
LOGIT_SPREAD = 4.0
"""Standard deviation of the logits: leaves an entropy of two to three nats of a usual vocabulary's ten to twelve."""


def checkpoint_directory(shape: Shape) -> Path:
    """Where the model of a shape lies for every measurement."""
    return MODELS / f"{shape.name}-t5"


def write_checkpoint(shape: Shape, directory: Path) -> Path:
    """Write the directory, unless it is there already."""
    if (directory / "model.safetensors").exists():
        return directory
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(shape.config()))
    header, end = {}, 0
    for name, dims in shape.tensors().items():
        first, end = end, end + 2 * math.prod(dims)
        header[name] = {"dtype": "BF16", "shape": dims, "data_offsets": [first, end]}
    text = json.dumps(header).encode()
    part = directory / "model.safetensors.part"
    with part.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for index, (name, dims) in enumerate(shape.tensors().items()):
            gain = last_gain(shape) if name == "model.norm.weight" else 1.0
            file.write(draw_bf16(index, dims, gain).tobytes())
    part.rename(directory / "model.safetensors")
    return directory


def draw_bf16(seed: int, dims: tuple[int, ...], gain: float = 1.0) -> NDArray[np.uint16]:
    """The weights of a tensor as bf16 bits; those of a norm are all ``gain``."""
    if len(dims) == 1:
        return np.full(dims, to_bf16(np.array(gain, np.float32)))
    generator = np.random.default_rng(seed)
    values: NDArray[np.uint16] = student_t5()[generator.integers(0, 1 << 16, dims, np.uint16)]
    channels = generator.choice(dims[1], max(1, dims[1] // CHANNELS_PER_OUTLIER), replace=False)
    values[:, channels] = to_bf16(to_float32(values[:, channels]) * np.float32(OUTLIER))
    return values


def last_gain(shape: Shape) -> float:
    """What the last norm multiplies by, so that logits spread as `LOGIT_SPREAD` says."""
    outliers = max(1, shape.hidden // CHANNELS_PER_OUTLIER)
    return LOGIT_SPREAD / (SPREAD * math.sqrt(shape.hidden + outliers * (OUTLIER**2 - 1)))


@cache
def student_t5() -> NDArray[np.uint16]:
    """65,536 equally likely values of Student's t with 5 degrees of freedom, scaled to `SPREAD`, as bf16 bits.

    Source of the distribution function: Abramowitz and Stegun, 26.7.3.
    """
    angles = np.linspace(-np.pi / 2, np.pi / 2, 1 << 20)[1:-1]
    sine, cosine = np.sin(angles), np.cos(angles)
    below = 0.5 + (angles + sine * cosine + 2 / 3 * sine * cosine**3) / np.pi
    wanted = (np.arange(1 << 16) + 0.5) / (1 << 16)
    t = np.sqrt(5) * np.tan(np.interp(wanted, below, angles))
    return to_bf16((t * SPREAD / np.sqrt(5 / 3)).astype(np.float32))


def to_bf16(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Bits of the nearest bf16, ties to the larger magnitude."""
    return ((values.view(np.uint32) + np.uint32(0x8000)) >> 16).astype(np.uint16)


def to_float32(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """The values that bf16 bits stand for."""
    return (bits.astype(np.uint32) << 16).view(np.float32)
