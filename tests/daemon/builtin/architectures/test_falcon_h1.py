from __future__ import annotations

import pytest

from llmd.api import Add, Attention, CheckpointError, Embed, Head, UnsupportedModelError
from llmd.builtin.architectures.falcon_h1 import plan
from tests.golden.models.catalog import tiny_model

CONFIG = tiny_model("falcon-h1").config
PLAIN = tiny_model("falcon-h1-plain").config


def test_every_layer_has_attention_and_a_state() -> None:
    paged, states = plan(CONFIG, None).groups
    assert (paged.kind, paged.layers, paged.kv_heads, paged.head_dim) == ("paged", (0, 1, 2), 2, 20)
    assert (states.kind, states.layers) == ("state", (0, 1, 2))


def test_multipliers_of_inputs_multiply_outputs() -> None:
    ops = [op for part in plan(CONFIG, None).parts for op in part.ops]
    assert next(op for op in ops if isinstance(op, Embed)).scale == 1.7
    assert next(op for op in ops if isinstance(op, Head)).scale == 0.8
    scores = next(op for op in ops if isinstance(op, Attention)).scale
    assert scores == pytest.approx(1.2**2 * 0.7 * 20**-0.5)
    attended = next(op for op in ops if isinstance(op, Add) and op.b == "attended")
    assert attended.scale == pytest.approx(1.2 * 0.9)


def test_without_multipliers_nothing_is_multiplied() -> None:
    ops = [op for part in plan(PLAIN, None).parts for op in part.ops]
    assert [op for op in ops if isinstance(op, Add) and op.scale != 1.0] == []


@pytest.mark.parametrize("name", ["attention_bias", "mlp_bias", "projectors_bias", "mamba_proj_bias"])
def test_biases_are_refused(name: str) -> None:
    with pytest.raises(UnsupportedModelError, match=f"{name} is True, which llmd does not support"):
        plan({**CONFIG, name: True}, None)


def test_a_norm_before_the_gate_is_refused_only_if_there_is_a_norm() -> None:
    unstated = {name: value for name, value in CONFIG.items() if name != "mamba_norm_before_gate"}
    assert plan(unstated, None) == plan(CONFIG, None)
    with pytest.raises(UnsupportedModelError, match="mamba_norm_before_gate"):
        plan({**unstated, "mamba_rms_norm": True}, None)


def test_the_width_of_states_follows_from_that_of_layers_if_it_is_not_stated() -> None:
    unstated = {name: value for name, value in CONFIG.items() if name != "mamba_d_ssm"}
    assert plan({**unstated, "mamba_d_head": 32}, None).groups[1].state_bytes > 0
    with pytest.raises(CheckpointError, match="4 heads of 20 elements do not add up to 128"):
        plan(unstated, None)
