from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from llmd.api import HIDDEN, Add, Norm, Op
from llmd.api.state_ops import StateSpace
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.falcon_h1_layer import (
    Multipliers,
    ParallelLayer,
    feed_forward_ops,
    mixer_ops,
)
from llmd.builtin.architectures.layer import LayerStyle, Modules
from llmd.builtin.architectures.mamba import Mamba
from llmd.builtin.architectures.rope import read_rope, rope_table
from llmd.builtin.architectures.shape import Shape

PLAIN = Multipliers(
    scores=1.0,
    attended=0.5,
    projections=dict.fromkeys(("z", "x", "b", "c", "time"), 1.0),
    state=2.0,
    gate=1.0,
    down=3.0,
)
STYLE = LayerStyle(
    1e-5,
    "silu",
    0.25,
    pre_norms=("input_layernorm", "pre_ff_layernorm"),
    residual_scale=3.0,
    modules=Modules(feed_forward="feed_forward"),
)
LAYER = ParallelLayer(
    Shape(20, 30, 100, 2, 4, 2, 8), STYLE, Mamba("mamba", 4, 1, 6, 5, 3), has_norm=False, multipliers=PLAIN
)
ROPE = rope_table(read_rope(ConfigFields({"max_position_embeddings": 64})), 8, 64)


def mixer(layer: ParallelLayer) -> tuple[Op, ...]:
    return mixer_ops(layer, 1, ROPE, attention_group=0, state_group=1)


def multiplied(ops: tuple[Op, ...]) -> Iterator[tuple[str, float]]:
    """The values that are multiplied, and by what."""
    return ((op.out, op.scale + 1) for op in ops if isinstance(op, Add) and op.a == op.b)


def with_factors(changed: Mapping[str, object]) -> ParallelLayer:
    return msgspec.structs.replace(LAYER, multipliers=msgspec.structs.replace(PLAIN, **changed))


def test_attention_and_states_read_one_norm_and_add_to_the_stream() -> None:
    ops = mixer(LAYER)
    assert [op.weight.name for op in ops if isinstance(op, Norm) and op.weight] == [
        "model.layers.1.input_layernorm.weight"
    ]
    assert [(op.a, op.b, op.scale) for op in ops if isinstance(op, Add)] == [
        (HIDDEN, "attended", 0.5),
        (HIDDEN, "y", 2.0),
    ]


def test_values_of_states_are_multiplied_before_the_convolution() -> None:
    ops = mixer(with_factors({"projections": {"z": 0.5, "x": 1.0, "b": 3.0}}))
    assert list(multiplied(ops)) == [("z", 0.5), ("b", 3.0)]
    states = next(number for number, op in enumerate(ops) if isinstance(op, StateSpace))
    assert all(ops.index(op) < states for op in ops if isinstance(op, Add) and op.a == op.b)


def test_what_states_write_may_be_normalised() -> None:
    ops = mixer(msgspec.structs.replace(LAYER, has_norm=True))
    last = [op for op in ops if isinstance(op, Norm)][-1]
    assert last.weight is not None
    assert last.weight.name == "model.layers.1.mamba.norm.weight"


def test_the_network_multiplies_its_gate() -> None:
    assert list(multiplied(feed_forward_ops(LAYER, 1))) == []
    ops = feed_forward_ops(with_factors({"gate": 0.5}), 1)
    assert list(multiplied(ops)) == [("gate", 0.5)]
    assert ops[-1] == Add(HIDDEN, "y", HIDDEN, 3.0)
