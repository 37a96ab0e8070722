from __future__ import annotations

from llmd.api import Gate, GatedDelta, Linear
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.kimi_delta import KimiDelta, kimi_delta_ops, read_kimi_delta
from llmd.builtin.architectures.layer import LayerStyle
from llmd.builtin.architectures.shape import Shape

DELTA = KimiDelta(heads=3, head_dim=5, taps=4)
OPS = kimi_delta_ops(DELTA, Shape(20, 30, 100, 2, 4, 4, 5), LayerStyle(1e-5, "silu", 1.0), 1, 0)


def test_each_element_of_a_key_has_a_decay() -> None:
    delta = next(op for op in OPS if isinstance(op, GatedDelta))
    assert delta.decays_elements
    assert (delta.heads, delta.key_heads, delta.key_dim, delta.value_dim) == (3, 3, 5, 5)
    assert delta.k_taps.name == "model.layers.1.self_attn.k_conv1d.weight"
    assert 4 * delta.state_elements == DELTA.state_bytes


def test_decays_and_gates_are_made_from_vectors_as_long_as_a_head() -> None:
    made = {op.x: op.weights[0].shape for op in OPS if isinstance(op, Linear)}
    assert made["decay_low"] == made["gate_low"] == (15, 5)
    assert any(isinstance(op, Gate) and op.gate == "gate" for op in OPS)


def test_sizes_are_those_of_linear_attention() -> None:
    fields = ConfigFields({"linear_attn_config": {"num_heads": 32, "head_dim": 128}})
    assert read_kimi_delta(fields) == KimiDelta(32, 128, 4)
