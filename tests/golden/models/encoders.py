"""BERT and (XLM-)RoBERTa: learned positions, token types, norms after each part, no gate."""

from __future__ import annotations

from typing import Any

from tests.golden.models.tiny import CONTEXT_LEN


def bert(architecture: str = "BertModel", **fields: Any) -> dict[str, Any]:
    """A ``config.json`` as transformers writes it; ``layer_norm_eps`` is large so that a wrong one shows."""
    shared: dict[str, Any] = {
        "architectures": [architecture],
        "model_type": "bert",
        "hidden_act": "gelu",
        "max_position_embeddings": CONTEXT_LEN,
        "layer_norm_eps": 1e-2,
        "position_embedding_type": "absolute",
        "type_vocab_size": 2,
        "pad_token_id": 0,
        "vocab_size": 192,
        "hidden_size": 64,
        "intermediate_size": 160,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "id2label": {"0": "LABEL_0"},
        "label2id": {"LABEL_0": 0},
    }
    return shared | fields


def roberta(architecture: str = "XLMRobertaModel", **fields: Any) -> dict[str, Any]:
    """The same with positions that begin after that of the padding token."""
    shared: dict[str, Any] = {
        "model_type": "xlm-roberta",
        "bos_token_id": 0,
        "pad_token_id": 1,
        "eos_token_id": 2,
        "type_vocab_size": 1,
        "max_position_embeddings": CONTEXT_LEN + 2,
    }
    return bert(architecture, **(shared | fields))
