"""llmd can load the shapes, and their sizes match the models that they represent."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from bench.checkpoint import write_checkpoint
from bench.cpu_quality import opened
from bench.shapes import SHAPES, Shape
from llmd.api import KVGroup
from tests.bench.families import FAMILIES


@pytest.mark.parametrize("shape", FAMILIES, ids=lambda shape: shape.family)
def test_llmd_reads_every_family(shape: Shape, tmp_path: Path) -> None:
    with opened(write_checkpoint(shape, tmp_path / shape.name)) as model:
        assert model.notices == ()
        groups = model.plan.groups
    keys = math.ceil(sum(map(token_bytes, groups)))
    states = sum(len(group.layers) * group.state_bytes for group in groups)
    assert (keys, states) == (shape.kv_token_bytes, shape.state_bytes)


def token_bytes(group: KVGroup) -> float:
    """Return the bytes that a group keeps of a token in float16."""
    elements = len(group.layers) * group.kv_heads * group.head_dim / group.stride
    return 2 * elements if group.kind == "latent" else 4 * elements


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("llama-1b", 1.04),
        ("llama-100m", 0.088),
        ("qwen3-4b", 4.02),
        ("phi-4-mini", 3.84),
        ("qwen3-a3b", 3.04),
        ("qwen3.5-4b", 4.2),
        ("deepseek-v4-flash-of-64-experts", 13.26),
    ],
)
def test_sizes_are_as_stated(name: str, billions: float) -> None:
    shape = SHAPES[name]
    assert round((shape.products + shape.head_products) / 1e9, 3) == pytest.approx(billions, rel=0.006)


def test_a_shape_of_fewer_layers_is_another() -> None:
    whole = SHAPES["llama-1b"]
    some = whole.with_layers(2)
    assert (some.name, some.products * 8, some.head_products) == (
        "llama-1b-of-2-layers",
        whole.products,
        whole.head_products,
    )
    with pytest.raises(ValueError, match="1 or more"):
        whole.with_layers(0)
