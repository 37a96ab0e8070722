"""Compares the errors of a format of llmd and a type of llama.cpp for several kinds of weights.

Random weights are not representative: outlier channels favour formats that store outliers separately. So
trained weights come first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.checkpoint import GAUSSIAN, MODELS, STUDENT_T5, TIMED, checkpoint_directory, write_checkpoint
from bench.cpu_quality import bits_per_weight, weight_error
from bench.peer import make_gguf, run_peer
from bench.shapes import Shape
from llmd.api.tensors import Format
from llmd.builtin.guide import guide_directory

TRAINED = "trained, of the built-in model `guide`"
SAMPLE = Shape(
    "sample", hidden=512, layers=16, heads=8, kv_heads=2, head_dim=64, ffn=1024, vocab=4096, context=1024
)
"""Written within a second. As deep as a real model, as llama.cpp chooses some types by the position of the
layer.
"""


@dataclass(frozen=True)
class WeightErrors:
    """NMSE (squared error over the squares of the weights) and bits per weight by side, for a kind of
    weights.
    """

    weights: str
    errors: Mapping[str, float]
    bits: Mapping[str, float]


def measure_errors(quant: Format, kind: str, timed: Path) -> list[WeightErrors]:
    """Measure the errors for trained weights, random weights, and the weights of the ``timed`` directory."""
    return [
        compare_errors(title, directory, quant, kind) for title, directory in sorts_of_weights(timed).items()
    ]


def sorts_of_weights(timed: Path) -> dict[str, Path]:
    """Return the directories of every kind of weights by title."""
    random = {
        one.title: write_checkpoint(SAMPLE, checkpoint_directory(SAMPLE, one), one)
        for one in (GAUSSIAN, STUDENT_T5)
    }
    return {TRAINED: guide_directory(), **random, TIMED.title: timed}


def compare_errors(title: str, directory: Path, quant: Format, kind: str) -> WeightErrors:
    """Measure the errors of both sides on one directory, for the codes that they compute with."""
    facts = json.loads(run_peer("bench.gguf_quality", str(directory), str(gguf_of(directory, kind))))
    return WeightErrors(
        title,
        errors={"llmd": weight_error(directory, quant), "llama.cpp": facts["nmse"]},
        bits={"llmd": bits_per_weight(directory, quant), "llama.cpp": facts["bits_per_weight"]},
    )


def gguf_of(directory: Path, kind: str) -> Path:
    """Convert a checkpoint to a GGUF file of a llama.cpp type."""
    return make_gguf(directory, kind, MODELS / f"{directory.name}.{kind}.gguf")


def error_table(quant: str, kind: str, found: Sequence[WeightErrors]) -> Iterator[str]:
    """Yield the table of errors."""
    yield f"| error of the weights (NMSE) | llmd {quant} | bits | llama.cpp {kind} | bits | llmd / llama.cpp |"
    yield "|---|---|---|---|---|---|"
    for one in found:
        (mine, theirs), (my_bits, their_bits) = one.errors.values(), one.bits.values()
        ratio = f"{mine / theirs:.2f}" if theirs else "–"
        yield f"| {one.weights} | {mine:.2e} | {my_bits:.2f} | {theirs:.2e} | {their_bits:.2f} | {ratio} |"
