"""The keys of models whose attention is limited to the positions that indexers choose."""

from __future__ import annotations

from typing import Any

from llmd.models.gguf.fields import GgufFields
from llmd.models.gguf.mixtures import deepseek2_fields, sigmoid_experts
from llmd.models.gguf.state_spaces import having_tensor

TYPES = "attention.indexer.types"
"""Whether each layer has an indexer; others use the positions of the one before them that has."""


def sparse_fields(fields: GgufFields) -> dict[str, Any]:
    """Return the fields of DeepSeek-V3.2 and GLM-5. Older files do not state which layers have an indexer:
    their tensors do.
    """
    having = having_tensor(fields, "indexer.attn_k.weight")
    stated = fields.flags(TYPES)
    full = stated[: len(having)] if isinstance(stated, list) else having
    return (
        sigmoid_experts(fields)
        | deepseek2_fields(fields)
        | {
            "index_n_heads": fields.integer("attention.indexer.head_count"),
            "index_head_dim": fields.integer("attention.indexer.key_length"),
            "index_topk": fields.integer("attention.indexer.top_k"),
            "indexer_types": ["full" if one else "shared" for one in full],
        }
    )
