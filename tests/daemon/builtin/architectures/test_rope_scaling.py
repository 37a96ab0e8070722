from __future__ import annotations

import math

import pytest

from llmd.builtin.architectures import rope_scaling

PLAIN = rope_scaling.frequencies(10000.0, 64)


def test_frequencies_fall_from_one_towards_the_inverse_base() -> None:
    assert PLAIN[0] == 1.0
    assert PLAIN[16] == pytest.approx(0.01)
    assert len(PLAIN) == 32


def test_linear_scaling_divides_every_frequency() -> None:
    assert rope_scaling.linear(PLAIN, 4.0) == [f / 4 for f in PLAIN]


def test_dynamic_scaling_leaves_contexts_within_the_trained_length_alone() -> None:
    assert rope_scaling.dynamic_theta(10000.0, 64, 2.0, 100, 4096) == 10000.0
    assert rope_scaling.dynamic_theta(10000.0, 64, 2.0, 4096, 4096) == 10000.0


def test_dynamic_scaling_interpolates_the_slowest_frequency_exactly() -> None:
    factor, context_len, trained_len = 2.0, 8192, 4096
    theta = rope_scaling.dynamic_theta(10000.0, 64, factor, context_len, trained_len)
    stretch = factor * context_len / trained_len - (factor - 1)
    assert rope_scaling.frequencies(theta, 64)[-1] == pytest.approx(PLAIN[-1] / stretch)


def test_llama3_scaling_divides_slow_rotations_keeps_fast_ones_and_blends_between() -> None:
    scaled = rope_scaling.llama3(PLAIN, 8.0, 1.0, 4.0, 8192)
    for freq, new in zip(PLAIN, scaled, strict=True):
        turns = 8192 * freq / (2 * math.pi)
        if turns > 4:
            assert new == freq
        elif turns < 1:
            assert new == freq / 8
        else:
            assert freq / 8 < new < freq


def test_yarn_divides_slow_rotations_keeps_fast_ones_and_blends_between() -> None:
    scaled = rope_scaling.yarn(10000.0, 64, 4.0, 32.0, 1.0, 4096, truncate=True)
    ratios = [new / freq for freq, new in zip(PLAIN, scaled, strict=True)]
    assert ratios[0] == 1.0
    assert ratios[-1] == pytest.approx(0.25)
    assert ratios == sorted(ratios, reverse=True)
    assert any(0.3 < ratio < 0.9 for ratio in ratios)


def test_attention_factors_are_one_without_stretching_and_grow_with_it() -> None:
    assert rope_scaling.yarn_attention_factor(1.0) == 1.0
    assert rope_scaling.yarn_attention_factor(math.e) == pytest.approx(1.1)
    assert rope_scaling.longrope_attention_factor(1.0, 4096) == 1.0
    assert rope_scaling.longrope_attention_factor(4096.0, 4096) == pytest.approx(math.sqrt(2))


def test_longrope_divides_each_frequency_by_its_own_factor() -> None:
    assert rope_scaling.longrope([1.0, 0.5], [2.0, 5.0]) == [0.5, 0.1]


def test_proportional_frequencies_are_those_of_whole_heads_and_then_0() -> None:
    found = rope_scaling.proportional(10000.0, 64, 0.3, 2.0)
    assert found[:9] == [f / 2 for f in PLAIN[:9]]
    assert found[9:] == [0.0] * 23
