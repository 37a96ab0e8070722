from __future__ import annotations

from typing import Any

import pytest

from llmd.api import Rope, RopeTable
from llmd.builtin.architectures.gemma3 import plan
from tests.golden.models.catalog import tiny_model

CONFIG = tiny_model("gemma3-linear-rope").config


def tables(**changes: Any) -> list[RopeTable]:
    parts = plan({**CONFIG, **changes}, None).parts
    return [
        next(op.table for op in part.ops if isinstance(op, Rope)) for part in parts if part.kind == "mixer"
    ]


def test_windowed_layers_rotate_by_another_base_and_are_not_scaled() -> None:
    local, _, full = tables()
    unscaled = tables(rope_scaling=None)
    assert local == unscaled[0]
    assert full.inv_freq == pytest.approx([f / 8 for f in unscaled[2].inv_freq])
    assert local.inv_freq[1] == pytest.approx(10000.0 ** (-2 / 20))


def test_the_new_spelling_has_one_rope_for_each_kind_of_layer() -> None:
    old = ("rope_theta", "rope_local_base_freq", "rope_scaling")
    new = {name: value for name, value in CONFIG.items() if name not in old} | {
        "rope_parameters": {
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        }
    }
    assert plan(new, None) == plan(CONFIG, None)


def test_the_old_bases_count_where_the_new_spelling_has_none() -> None:
    by_kind = {"full_attention": {"rope_type": "default"}, "sliding_attention": {"rope_type": "default"}}
    changed = {"rope_theta": 500.0, "rope_local_base_freq": 700.0, "rope_scaling": None}
    assert tables(**changed, rope_parameters=by_kind) == tables(**changed)


def test_scaling_beside_the_new_spelling_is_that_of_full_layers() -> None:
    new = {"full_attention": {"rope_theta": 500.0}, "sliding_attention": {"rope_theta": 700.0}}
    scaled = tables(rope_parameters=new)
    plain = tables(rope_parameters=new, rope_scaling=None)
    assert scaled[0] == plain[0]
    assert scaled[2].inv_freq == pytest.approx([f / 8 for f in plain[2].inv_freq])


def test_every_sixth_layer_is_full_where_nothing_is_said() -> None:
    unsaid = {name: value for name, value in CONFIG.items() if name != "sliding_window_pattern"}
    groups = plan({**unsaid, "num_hidden_layers": 13}, None).groups
    assert next(group.layers for group in groups if group.window is None) == (5, 11)
