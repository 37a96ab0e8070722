from __future__ import annotations

from llmd.api import Attention, Experts, Linear, Norm, Op, Router
from llmd.builtin.architectures.gemma4 import plan
from tests.golden.models.catalog import tiny_model


def ops(name: str, kind: str, layer: int) -> list[Op]:
    parts = plan(tiny_model(name).config, None).parts
    return [op for part in parts if (part.kind, part.layer) == (kind, layer) for op in part.ops]


def test_values_are_what_the_matrix_of_keys_makes() -> None:
    full, windowed = ops("gemma4", "mixer", 2), ops("gemma4", "mixer", 0)
    assert next(op for op in full if isinstance(op, Linear)).outs == ("q", "k")
    assert next(op for op in windowed if isinstance(op, Linear)).outs == ("q", "k", "v")
    values = next(op for op in full if isinstance(op, Norm) and op.out == "v")
    assert (values.x, values.weight) == ("k", None)
    assert full.index(values) < next(i for i, op in enumerate(full) if isinstance(op, Norm) and op.out == "k")


def test_a_layer_without_keys_reads_those_of_the_last_one_of_its_kind() -> None:
    for layer, source, group in ((3, 1, 0), (4, 1, 0), (5, 2, 1)):
        found = ops("gemma4-shared", "mixer", layer)
        assert next(op for op in found if isinstance(op, Linear)).outs == ("q",)
        (attention,) = (op for op in found if isinstance(op, Attention))
        assert (attention.k, attention.v, attention.layer, attention.group) == (None, None, source, group)


def test_layers_without_keys_are_twice_as_wide() -> None:
    widths = [
        next(op.weights[0].shape[0] for op in ops("gemma4-shared", "ffn", layer) if isinstance(op, Linear))
        for layer in range(6)
    ]
    assert widths == [40, 40, 40, 80, 80, 80]


def test_experts_read_the_hidden_states_beside_the_feed_forward_network() -> None:
    found = ops("gemma4-moe", "ffn", 0)
    (router,) = (op for op in found if isinstance(op, Router))
    assert router.gains is not None
    assert router.gains.name == "model.layers.0.router.per_expert_scale"
    assert router.scale == 64**-0.5
    scaled = next(op for op in found if isinstance(op, Norm) and op.out == router.x)
    assert (scaled.x, scaled.weight and scaled.weight.name) == ("hidden", "model.layers.0.router.scale")
    (experts,) = (op for op in found if isinstance(op, Experts))
    assert experts.gate is not None
    assert (experts.gate.rows, experts.up.rows) == ((0, 24), (24, 48))
