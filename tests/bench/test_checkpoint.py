"""Random weights have the stated distributions, and logits are spread like a trained model's."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench.checkpoint import (
    CHANNELS_PER_OUTLIER,
    GAUSSIAN,
    SPREAD,
    STUDENT_T5,
    TIMED,
    WeightKind,
    checkpoint_directory,
    draw_bf16,
    gaussian,
    last_gain,
    stored_tensors,
    student_t5,
    to_bf16,
    to_float32,
    write_checkpoint,
)
from bench.shapes import Shape

TINY = Shape("tiny", hidden=64, layers=2, heads=2, kv_heads=1, head_dim=32, ffn=128, vocab=1000)


def test_the_table_has_the_quantiles_of_a_t_distribution() -> None:
    t = to_float32(student_t5()) / SPREAD * np.sqrt(5 / 3)
    assert np.all(np.diff(t) >= 0)
    # Two-sided 5 %, 1 % and 0.1 % of 5 degrees of freedom, from any table.
    for share, value in ((0.05, 2.571), (0.01, 4.032), (0.001, 6.869)):
        assert abs(np.quantile(t, 1 - share / 2) - value) < 0.05 * value
    assert abs(to_float32(student_t5()).std() - SPREAD) < 0.01 * SPREAD


def test_the_gaussian_table_has_the_quantiles_of_a_normal_distribution() -> None:
    values = to_float32(gaussian()) / SPREAD
    assert np.all(np.diff(values) >= 0)
    for share, value in ((0.05, 1.960), (0.01, 2.576), (0.001, 3.291)):
        assert abs(np.quantile(values, 1 - share / 2) - value) < 0.02 * value
    assert abs(values.std() - 1) < 0.01


@pytest.mark.parametrize(("kind", "outliers"), [(TIMED, 2), (STUDENT_T5, 0), (GAUSSIAN, 0)])
def test_one_channel_in_a_thousand_is_an_outlier_where_the_kind_has_them(
    kind: WeightKind, outliers: int
) -> None:
    spreads = to_float32(draw_bf16(1, (512, 2 * CHANNELS_PER_OUTLIER), kind)).std(axis=0)
    assert np.sum(spreads > 5 * SPREAD) == outliers
    assert abs(np.median(spreads) - SPREAD) < 0.1 * SPREAD


def test_kinds_of_weights_lie_apart() -> None:
    assert len({checkpoint_directory(TINY, kind) for kind in (TIMED, STUDENT_T5, GAUSSIAN)}) == 3
    assert checkpoint_directory(TINY) == checkpoint_directory(TINY, TIMED)


def test_draws_repeat_and_differ_by_seed() -> None:
    assert np.array_equal(draw_bf16(1, (8, 8)), draw_bf16(1, (8, 8)))
    assert not np.array_equal(draw_bf16(1, (8, 8)), draw_bf16(2, (8, 8)))


def test_bf16_is_the_nearest() -> None:
    values = np.array([1.0, 1.0 + 2**-8, 1.0 + 2**-9, -3.1415927], np.float32)
    assert to_float32(to_bf16(values)).tolist() == [1.0, 1.0 + 2**-7, 1.0, -3.140625]


def test_a_directory_is_written_once_and_its_last_norm_spreads_the_logits(tmp_path: Path) -> None:
    directory = write_checkpoint(TINY, tmp_path / "tiny")
    tensors = dict(stored_tensors(directory / "model.safetensors"))
    assert {name: bits.shape for name, bits in tensors.items()} == TINY.tensors()
    gain = to_float32(to_bf16(np.array(last_gain(TINY), np.float32)))
    assert np.all(to_float32(tensors["model.norm.weight"]) == gain)
    assert np.all(to_float32(tensors["model.layers.0.input_layernorm.weight"]) == 1)
    assert json.loads((directory / "config.json").read_text())["vocab_size"] == 1000
    before = (directory / "model.safetensors").stat().st_mtime_ns
    write_checkpoint(TINY, directory)
    assert (directory / "model.safetensors").stat().st_mtime_ns == before
