"""The widths of feed-forward networks that files state."""

from __future__ import annotations

import numpy as np

from llmd.models.gguf.inner_sizes import KEY, inner_sizes
from tests.daemon.models.gguf.test_config_keys import plan


def test_the_width_is_that_of_a_gate() -> None:
    assert inner_sizes(plan("llama-f16"), {}) == {KEY: 160}
    assert inner_sizes(plan("granite-hybrid"), {}) == {KEY: 88}


def test_a_mixture_states_what_its_configuration_does() -> None:
    assert inner_sizes(plan("qwen3-moe"), {"intermediate_size": 77}) == {KEY: 77}
    assert inner_sizes(plan("qwen3-moe"), {}) == {}


def test_models_without_other_networks_than_experts_state_none() -> None:
    assert inner_sizes(plan("deepseek-v4-published"), {"intermediate_size": 48}) == {}


def test_layers_with_one_half_are_told_one_by_one() -> None:
    assert np.array_equal(inner_sizes(plan("nemotron-h"), {})[KEY], [0, 96, 0, 0, 96])
    assert np.array_equal(inner_sizes(plan("nemotron-h-moe"), {})[KEY], [0, 32, 0, 32, 0])
    assert inner_sizes(plan("mamba2"), {}) == {KEY: 0}
