from __future__ import annotations

import math

from llmd.api import Add, Embed, Linear, Norm, Op
from llmd.builtin.architectures.gemma4 import plan
from tests.golden.models.catalog import tiny_model


def ops(layer: int) -> list[Op]:
    parts = plan(tiny_model("gemma4-per-layer").config, None).parts
    return [op for part in parts if (part.kind, part.layer) == ("ffn", layer) for op in part.ops]


def test_a_layer_looks_up_its_own_columns() -> None:
    for layer in range(5):
        (found,) = (op for op in ops(layer) if isinstance(op, Embed) and op.columns is not None)
        assert found.columns == (12 * layer, 12 * layer + 12)
        assert found.table.shape == (131, 60)
        assert found.scale == math.sqrt(12 / 2)


def test_a_layer_projects_the_embedding_of_the_model_by_its_own_rows() -> None:
    embedded = next(op for op in ops(2) if isinstance(op, Embed) and op.columns is None)
    assert (embedded.table.name, embedded.scale) == ("model.embed_tokens.weight", 8.0)
    projection = next(op for op in ops(2) if isinstance(op, Linear) and op.x == embedded.out)
    assert projection.weights[0].rows == (24, 36)
    norm = next(op for op in ops(2) if isinstance(op, Norm) and op.x == projection.outs[0])
    assert norm.eps == 1e-3 * 64
    added = next(op for op in ops(2) if isinstance(op, Add) and op.b == norm.out)
    assert added.scale == math.sqrt(0.5)
