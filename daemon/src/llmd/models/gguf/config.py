"""Translate the metadata of a GGUF file to the fields of ``config.json``."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any

from llmd.api.embedding import Pooling
from llmd.api.errors import UnsupportedModelError
from llmd.models.gguf.families import FAMILIES, Family, family_of, has_experts
from llmd.models.gguf.fields import GgufFields, MetadataFields, head_dim, token_ids
from llmd.models.gguf.gguf_model import GgufModel
from llmd.models.gguf.metadata import Metadata
from llmd.models.gguf.rope import rope_config

TYPE = "general.type"
ENCODER = "bert"
EMBEDDINGS, HEAD = "token_embd.weight", "output.weight"
LABELS = "cls.output.weight"
EOS_NAMES = ("eos", "eot", "eom")
"""Names of the tokens that end generation: end of text, of turn and of message."""

RANK = 4
POOLINGS: Mapping[int, Pooling] = {1: "mean", 2: "cls", 3: "last"}


def read_config(model: GgufModel) -> dict[str, Any]:
    """Return the configuration of the model, as ``config.json`` would have it.

    Raises:
        CheckpointError: a key or tensor is missing or has the wrong type.
        UnsupportedModelError: the architecture or a value is not supported.
    """
    fields = GgufFields(model.metadata, model.owners)
    _refuse_others(fields, model)
    family = family_of(fields)
    return _encoder(fields, model) if family is None else _decoder(family, fields, model)


def pooling(metadata: Metadata) -> Pooling | None:
    """Return the pooling if the file says that the model is for embedding; else None."""
    return POOLINGS.get(GgufFields(metadata, ()).integer("pooling_type", 0))


def _refuse_others(fields: GgufFields, model: GgufModel) -> None:
    kind = MetadataFields(model.metadata).text(TYPE, "model")
    if kind != "model":
        raise UnsupportedModelError(
            f"{model.path}: holds {reprlib.repr(kind)}, not a model",
            hint="give the file of the model itself",
        )
    architecture, mixes = fields.architecture, has_experts(fields)
    if family_of(fields) is None and (architecture != ENCODER or mixes):
        is_mixture = mixes or "moe" in architecture
        what = f"{architecture}, a mixture of experts," if is_mixture else architecture
        raise UnsupportedModelError(
            f"{model.path}: llmd does not run the architecture {what} yet; of GGUF files it runs "
            f"{', '.join((*FAMILIES, ENCODER))}",
            hint="use a model of one of these architectures",
        )
    known_poolings = {0, *POOLINGS, *([RANK] if architecture == ENCODER else [])}
    if (stated := fields.integer("pooling_type", 0)) not in known_poolings:
        raise fields.refuse("pooling_type", stated, "0 none, 1 mean, 2 cls, 3 last; of an encoder 4 rank")


def _decoder(family: Family, fields: GgufFields, model: GgufModel) -> dict[str, Any]:
    heads, width = fields.integer("attention.head_count"), head_dim(fields)
    ending = family.bare if pooling(model.metadata) else "ForCausalLM"
    return {
        "architectures": [f"{family.name}{ending}"],
        "model_type": family.model_type,
        **_sizes(fields, model),
        "num_key_value_heads": fields.integer("attention.head_count_kv", heads),
        "head_dim": width,
        "max_position_embeddings": fields.integer("context_length"),
        "rms_norm_eps": _epsilon(fields),
        "tie_word_embeddings": not fields.has_tensor(HEAD),
        "rope_interleave": family.interleaved,
        **rope_config(fields, model, width),
        **family.config(fields),
    }


def _epsilon(fields: GgufFields) -> float:
    """Return what norms add to a mean square. Files of Nemotron-H have it under the key of other norms."""
    other = fields.real("attention.layer_norm_epsilon", None)
    return float(fields.real("attention.layer_norm_rms_epsilon", *([] if other is None else [other])))


def _encoder(fields: GgufFields, model: GgufModel) -> dict[str, Any]:
    """Return a BERT's configuration. RoBERTa without unused positions is a BERT; a reranker has labels."""
    ranks = fields.integer("pooling_type", 0) == RANK
    labels = {"num_labels": _rows(model, LABELS)} if ranks else {}
    return {
        "architectures": ["BertForSequenceClassification" if ranks else "BertModel"],
        **labels,
        "model_type": "bert",
        **_sizes(fields, model),
        "hidden_act": "gelu",
        "layer_norm_eps": fields.real("attention.layer_norm_epsilon"),
        "max_position_embeddings": _rows(model, "position_embd.weight"),
        "type_vocab_size": _rows(model, "token_types.weight"),
    }


def _sizes(fields: GgufFields, model: GgufModel) -> dict[str, Any]:
    """Return the fields of any model. The vocabulary size is the embedding's: stated ones can be wrong.

    Mixtures may state the width of experts alone.
    """
    experts = [width] if (width := fields.integer("expert_feed_forward_length", None)) else []
    return {
        "hidden_size": fields.integer("embedding_length"),
        "intermediate_size": fields.integer("feed_forward_length", *experts),
        "num_hidden_layers": fields.integer("block_count"),
        "num_attention_heads": fields.integer("attention.head_count"),
        "vocab_size": _rows(model, EMBEDDINGS),
        "bos_token_id": next(iter(token_ids(model.metadata, "bos")), None),
        "eos_token_id": token_ids(model.metadata, *EOS_NAMES) or None,
        "pad_token_id": next(iter(token_ids(model.metadata, "padding")), None),
    }


def _rows(model: GgufModel, name: str) -> int:
    shape = model.tensor(name).shape
    return shape[0] if shape else 0
