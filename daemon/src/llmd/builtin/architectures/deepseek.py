"""What all families with the layers of DeepSeek have in common."""

from __future__ import annotations

import msgspec

from llmd.api import LeftOut, ModelPlan
from llmd.builtin.architectures.activation import read_activation
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import Ends, Family, plan_with_one_rope
from llmd.builtin.architectures.indexer import CHOSEN, Indexing, read_indexing, unused_indexers
from llmd.builtin.architectures.latent import latent_scale, read_latent
from llmd.builtin.architectures.layer import LayerStyle
from llmd.builtin.architectures.mixture import Mixture
from llmd.builtin.architectures.rope import read_rope
from llmd.builtin.architectures.shape import MAX_HEAD_DIM, MAX_LAYERS, read_shape

LAYER_TYPES = ("dense", "sparse")


def latent_plan(
    architecture: str,
    fields: ConfigFields,
    mixture: Mixture,
    num_dense: int,
    context_len: int | None,
    indexing: Indexing | None = None,
) -> ModelPlan:
    """Plan a model with latent attention and, after ``num_dense`` layers, mixtures; without its draft head.

    Raises what `llmd.api.Architecture` lists.
    """
    rotated = read_rotated(fields)
    shape = msgspec.structs.replace(read_shape(fields, default_head_dim=rotated), head_dim=rotated)
    latent = read_latent(fields, indexing)
    style = LayerStyle(
        eps=fields.positive("rms_norm_eps"),
        activation=read_activation(fields),
        scale=latent_scale(latent, rotated, read_rope(fields)),
        rope_interleave=fields.flag("rope_interleave", default=True),
        mlp_bias=fields.flag("mlp_bias", default=False),
    )
    layers = shape.num_layers
    mixtures = tuple(mixture if layer >= num_dense else None for layer in range(layers))
    ends = Ends(tied=fields.flag("tie_word_embeddings", default=False))
    family = Family(architecture, shape, style, ends, (None,) * layers, mixtures, latent=latent)
    draft = LeftOut("a draft head", (f"model.layers.{layers}.", f"blk.{layers}."), is_draft=True)
    return msgspec.structs.replace(plan_with_one_rope(family, fields, context_len), left_out=(draft,))


def sparse_plan(
    architecture: str,
    fields: ConfigFields,
    mixture: Mixture,
    num_dense: int,
    context_len: int | None,
    *,
    interleaved: bool,
) -> ModelPlan:
    """Plan a model as `latent_plan` does, whose attention is limited to the positions that indexers choose.

    ``interleaved`` says which pairs of index queries and keys are rotated by default (`Indexing`).
    """
    indexing = read_indexing(fields, read_rotated(fields), interleaved=interleaved)
    plan = latent_plan(architecture, fields, mixture, num_dense, context_len, indexing)
    shares = len(indexing.layers) < plan.num_layers
    return msgspec.structs.replace(
        plan,
        left_out=(*plan.left_out, *unused_indexers(indexing, plan.num_layers)),
        carried=(CHOSEN,) if shares else (),
    )


def read_rotated(fields: ConfigFields) -> int:
    """Return the rotated elements of a query or key."""
    return fields.size("qk_rope_head_dim", at_most=MAX_HEAD_DIM)


def num_dense(fields: ConfigFields, default: int) -> int:
    """Return the number of layers without experts, which must be the first ones."""
    if "mlp_layer_types" not in fields:
        return fields.count("first_k_dense_replace", default)
    layers = fields.size("num_hidden_layers", at_most=MAX_LAYERS)
    types = fields.names("mlp_layer_types", layers, LAYER_TYPES)
    if types != sorted(types):
        fields.contradict("mlp_layer_types has a dense layer after a sparse one")
    return types.count(LAYER_TYPES[0])
