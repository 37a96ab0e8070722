"""Make the GGUF keys for indexers. `llmd.models.gguf.indexers` reads them back."""

from __future__ import annotations

import numpy as np

from llmd.api.latent_ops import Indexer
from llmd.api.plan import ModelPlan
from llmd.models.gguf.indexers import TYPES
from llmd.models.gguf.metadata import Value


def indexer_keys(plan: ModelPlan) -> dict[str, Value]:
    """Return the keys without the architecture prefix; none for a model whose attention sees all positions.

    They state which layers have an indexer, unless all have.
    """
    found = {part.layer: op for part in plan.parts for op in part.ops if isinstance(op, Indexer)}
    if not found:
        return {}
    indexer = next(iter(found.values()))
    having = [layer in found for layer in range(plan.num_layers)]
    return {
        "attention.indexer.head_count": indexer.heads,
        "attention.indexer.key_length": indexer.head_dim,
        "attention.indexer.top_k": indexer.top_k,
        **({} if all(having) else {TYPES: np.array(having)}),
    }
