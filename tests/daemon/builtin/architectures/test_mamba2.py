from __future__ import annotations

from llmd.api.state_ops import StateSpace
from llmd.builtin.architectures.mamba2 import plan
from tests.golden.models.catalog import tiny_model

CONFIG = tiny_model("mamba2").config
ODD = tiny_model("mamba2-odd").config


def test_layers_have_nothing_but_a_state_space() -> None:
    made = plan(CONFIG, None)
    assert [part.kind for part in made.parts] == ["embed", "mixer", "mixer", "mixer", "head"]
    (group,) = made.groups
    assert (group.kind, group.layers) == ("state", (0, 1, 2))
    assert group.state_bytes == 4 * (3 * (128 + 2 * 48) + 8 * 16 * 24)


def test_bounds_of_times_are_those_of_the_configuration() -> None:
    ops = [op for part in plan(ODD, None).parts for op in part.ops if isinstance(op, StateSpace)]
    assert {(op.least_time, op.most_time) for op in ops} == {(0.3, 1.5)}


def test_a_context_that_is_not_stated_is_a_million_tokens() -> None:
    unstated = {name: value for name, value in CONFIG.items() if name != "max_position_embeddings"}
    assert plan(unstated, None).max_context_len == 1 << 20
    assert plan(unstated, 100).context_len == 100
