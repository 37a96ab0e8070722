"""Measures quantisation loss: the error of the weights and the divergence of token distributions."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from bench.cpu_rounds import Party
from guide.questions import EVALUATION, read
from guide.tokens import Encoder
from guide.topics import load
from guide.turns import Conversation, Turn
from llmd.api.program import Program
from llmd.api.tensors import PLAIN_FORMATS, Format, TensorRef, Weight
from llmd.builtin.guide import guide_directory
from llmd.engine.composition import make_host
from llmd.models.formats.dequantization import dequantize
from llmd.models.lowering import lower
from llmd.models.open_model import OpenModel, open_model
from llmd.models.plain_formats import to_float32
from llmd.models.weight_formats import QUANTIZED_OPS, format_policy
from llmd.models.weight_source import CheckpointSource
from llmd_backend_cpu.device import describe

Logits = NDArray[np.float32]
"""Logits of scored positions: ``[positions, vocab]``."""
ROWS = 256
"""Rows of each matrix to compare with the unquantised ones."""
QUESTIONS = 32
RANDOM_TOKENS = 96
RANDOM_TEXTS = 6


@dataclass(frozen=True)
class Text:
    """Tokens, and the positions whose next-token distributions are scored."""

    tokens: list[int]
    scored: list[int]


@dataclass(frozen=True)
class Divergence:
    """Means over positions, in nats."""

    kl: float
    """Divergence from the distribution of the unquantised model."""
    entropy: float
    """Entropy of the distribution of the unquantised model."""
    same_best: float
    """Share of positions with the same most likely token."""


def guide_texts() -> list[Text]:
    """Return questions and answers of the guide's evaluation.

    The guide is sure of its answers, so divergences are mostly in the questions.
    """
    encoder, book = Encoder(Tokenizer.from_file(str(guide_directory() / "tokenizer.json"))), load()
    questions = read(EVALUATION)
    texts = []
    for question in questions[:: len(questions) // QUESTIONS][:QUESTIONS]:
        turn = Turn(question.ask, question.answer(book))
        example = encoder.example(Conversation("", (turn,)), loose=False)
        texts.append(Text(example.ids, list(range(len(example.ids) - 1))))
    return texts


def random_texts(vocab: int) -> list[Text]:
    """Return texts of random tokens; their first positions are not scored."""
    drawn = np.random.default_rng(0).integers(0, vocab, (RANDOM_TEXTS, RANDOM_TOKENS))
    return [Text(tokens, list(range(8, RANDOM_TOKENS))) for tokens in drawn.tolist()]


def compare(wanted: Logits, found: Logits) -> Divergence:
    """Return the divergence of logits from the wanted ones."""
    p, q = log_softmax(wanted), log_softmax(found)
    weights = np.exp(p)
    return Divergence(
        kl=float((weights * (p - q)).sum(axis=1).mean()),
        entropy=float(-(weights * p).sum(axis=1).mean()),
        same_best=float((wanted.argmax(axis=1) == found.argmax(axis=1)).mean()),
    )


def log_softmax(logits: Logits) -> NDArray[np.float64]:
    """Return the log-probabilities of each row."""
    wide = logits.astype(np.float64)
    wide -= wide.max(axis=1, keepdims=True)
    normalized: NDArray[np.float64] = wide - np.log(np.exp(wide).sum(axis=1, keepdims=True))
    return normalized


def scored_logits(side: Party, texts: Sequence[Text]) -> Logits:
    """Return the logits of the scored positions of every text, in order."""
    found = []
    with tempfile.TemporaryDirectory(prefix="llmd-logits-") as folder:
        path = Path(folder) / "logits.npy"
        for text in texts:
            side.call("logits", text.tokens, str(path))
            found.append(np.load(path)[text.scored])
    return np.concatenate(found)


def asked_for(quant: Format) -> Format | None:
    """Return llmd's quantisation option: None if the format is the checkpoint's own."""
    return None if quant == "bf16" else quant


def weight_error(directory: Path, quant: Format) -> float:
    """Return the squared error of llmd's quantised matrices over the squares of the matrices (NMSE)."""
    error = total = 0.0
    with opened(directory) as model:
        source = CheckpointSource(model.checkpoint)
        for weight in factors(model, quant):
            first, last = weight.ref.rows or (0, weight.ref.shape[0])
            part = TensorRef(weight.ref.name, weight.ref.shape, (first, min(last, first + ROWS)))
            stored = model.checkpoint.tensors[weight.ref.name].format
            assert stored is not None
            wanted = to_float32(source.read(Weight(part, stored)).data, stored).astype(np.float64)
            read = source.read(Weight(part, weight.format))
            plain = weight.format in PLAIN_FORMATS
            found = to_float32(read.data, weight.format) if plain else dequantize(read)
            error += float(((found - wanted) ** 2).sum())
            total += float((wanted**2).sum())
    return error / total


def matrix_bytes(directory: Path, quant: Format) -> tuple[int, int]:
    """Return the bytes of the matrices that every token is multiplied by, and of all experts."""
    with opened(directory) as model:
        dense, experts = (factors(model, quant, stacks=stacks) for stacks in (False, True))
        return sum(weight.num_bytes for weight in dense), sum(weight.num_bytes for weight in experts)


def bits_per_weight(directory: Path, quant: Format) -> float:
    """Return the bits per weight of the matrices that every token is multiplied by, including scales."""
    with opened(directory) as model:
        matrices = factors(model, quant)
        return (
            8
            * sum(weight.num_bytes for weight in matrices)
            / sum(math.prod(matrix.ref.view_shape) for matrix in matrices)
        )


@contextmanager
def opened(directory: Path) -> Iterator[OpenModel]:
    """Open a model directory with the installed architectures."""
    with tempfile.TemporaryDirectory(prefix="llmd-cache-") as cache:
        model = open_model(directory, make_host(Path(cache)).architectures())
    try:
        yield model
    finally:
        model.checkpoint.close()


def factors(model: OpenModel, quant: Format, *, stacks: bool = False) -> list[Weight]:
    """Return each matrix of linear ops and the head once, in the formats that the CPU backend gets; or the
    ``stacks`` of matrices of experts.
    """
    plan = model.plan
    formats = format_policy(model.checkpoint, describe(), asked_for(quant))
    program: Program = lower(plan, 0, len(plan.parts), format_of=formats)
    used = {
        index
        for slotted in program.ops
        if slotted.op.kind in QUANTIZED_OPS
        for index in slotted.weights
        if index is not None
    }
    weights = [program.weights[index] for index in sorted(used)]
    return [one for one in weights if one.ref.is_matrix and one.ref.is_stack == stacks]
