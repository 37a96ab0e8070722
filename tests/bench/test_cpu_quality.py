"""Divergences and errors match their definitions, for the codes that llmd computes with."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from bench.checkpoint import stored_tensors, to_float32, write_checkpoint
from bench.cpu_quality import (
    RANDOM_TOKENS,
    bits_per_weight,
    compare,
    factors,
    guide_texts,
    matrix_bytes,
    opened,
    random_texts,
    scored_logits,
    weight_error,
)
from llmd.builtin.guide import guide_directory
from llmd.models.formats.dequantization import dequantize
from llmd.models.formats.quantization import quantize
from tests.bench.families import DENSE, QWEN3_MOE


class Echo:
    """A side that writes each token as a logit."""

    name = "echo"

    def call(self, _method: str, *arguments: Any) -> None:
        tokens, path = arguments
        np.save(path, np.array(tokens, np.float32)[:, None])


def test_divergence_is_that_of_two_known_distributions() -> None:
    p, q = np.array([[0.5, 0.25, 0.25]]), np.array([[0.25, 0.5, 0.25]])
    found = compare(np.log(p).astype(np.float32) + 7, np.log(q).astype(np.float32) - 7)
    assert math.isclose(found.kl, 0.25 * math.log(2), rel_tol=1e-6)
    assert math.isclose(found.entropy, 1.5 * math.log(2), rel_tol=1e-6)
    assert found.same_best == 0


def test_a_model_does_not_diverge_from_itself() -> None:
    logits = np.random.default_rng(0).standard_normal((5, 50), np.float32)
    found = compare(logits, logits)
    assert (found.kl, found.same_best) == (0, 1)


def test_only_scored_places_count() -> None:
    text, other, *_ = random_texts(1000)
    assert len(text.tokens) == len(other.tokens) == RANDOM_TOKENS
    assert text.tokens != other.tokens
    assert scored_logits(Echo(), [text, text])[:, 0].tolist() == 2 * text.tokens[8:]


def test_the_guide_is_scored_on_its_own_questions() -> None:
    texts = guide_texts()
    assert len(texts) > 20
    assert all(text.scored == list(range(len(text.tokens) - 1)) for text in texts)
    assert len({tuple(text.tokens) for text in texts}) == len(texts)


def test_the_error_of_weights_is_that_of_their_codes(tmp_path: Path) -> None:
    for shape in DENSE:
        directory = write_checkpoint(shape, tmp_path / shape.name)
        error = total = 0.0
        for name, bits in stored_tensors(directory / "model.safetensors"):
            if bits.ndim == 1 or (name == "model.embed_tokens.weight" and not shape.tied):
                continue
            values = to_float32(bits)[:256]
            error += float(((dequantize(quantize(values, "q8")) - values).astype(np.float64) ** 2).sum())
            total += float((values.astype(np.float64) ** 2).sum())
        # Fused matrices are split before rows are selected, so the compared rows differ slightly.
        assert math.isclose(weight_error(directory, "q8"), error / total, rel_tol=0.05)


def test_a_matrix_that_a_format_does_not_fit_has_the_one_that_llmd_gives_it() -> None:
    with opened(guide_directory()) as model:
        formats = {(weight.format, weight.ref.shape[1]) for weight in factors(model, "q4")}
    assert formats == {("q4", 256), ("q4_g32", 640)}


def test_bytes_are_those_of_the_matrices_once(tmp_path: Path) -> None:
    for shape in DENSE:
        directory = write_checkpoint(shape, tmp_path / shape.name)
        count, _ = matrix_bytes(directory, "q8")
        rows = count - (shape.products + shape.head_products)  # a byte per weight, plus scales
        assert 2 / 64 <= rows / (shape.products + shape.head_products) <= 2 / 32
        num_weights = shape.products + shape.head_products
        assert math.isclose(bits_per_weight(directory, "q8"), 8 * count / num_weights)


def test_the_checkpoints_own_format_loses_nothing(tmp_path: Path) -> None:
    for shape in DENSE:
        directory = write_checkpoint(shape, tmp_path / shape.name)
        assert weight_error(directory, "bf16") == 0
        assert matrix_bytes(directory, "bf16") == (2 * (shape.products + shape.head_products), 0)


def test_bytes_of_experts_are_those_of_all(tmp_path: Path) -> None:
    dense, experts = matrix_bytes(write_checkpoint(QWEN3_MOE, tmp_path / "m"), "bf16")
    mixture = QWEN3_MOE.mixture
    assert mixture is not None
    used = experts * mixture.used / mixture.experts
    router = 2 * QWEN3_MOE.layers * mixture.experts * QWEN3_MOE.hidden
    assert dense + router + used == 2 * (QWEN3_MOE.products + QWEN3_MOE.head_products)
