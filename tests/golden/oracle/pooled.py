"""The vectors of every pooling in torch, by the formulas of sentence-transformers."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, PreTrainedModel

from tests.golden.models.embedding import second_at, texts
from tests.golden.models.tiny import TinyModel
from tests.golden.tensors import as_float32, draw_tensors


def build(case: TinyModel) -> PreTrainedModel:
    """The model of a case without a head or with a classifier;
    each tensor must find its place, none may be missing.
    """
    fields = {key: value for key, value in case.config.items() if key != "model_type"}
    config = AutoConfig.for_model(case.config["model_type"], **fields)
    scores = case.config["architectures"][0].endswith("ForSequenceClassification")
    kind = AutoModelForSequenceClassification if scores else AutoModel
    model = kind.from_config(config, attn_implementation="eager", dtype=torch.float32)
    weights = {name: torch.from_numpy(as_float32(stored)) for name, stored in draw_tensors(case)}
    model.load_state_dict(weights, strict=True)
    return model.eval()


@torch.no_grad()
def pooled(case: TinyModel) -> dict[str, NDArray[np.float32]]:
    """For each pooling float32 ``[texts, hidden]``, each text computed by itself."""
    model = build(case)
    states = [
        model(torch.tensor([ids]), use_cache=False).last_hidden_state[0].double() for ids in texts(case)
    ]
    vectors = [_vectors(hidden) for hidden in states]
    return {name: torch.stack([one[name] for one in vectors]).float().numpy() for name in vectors[0]}


@torch.no_grad()
def scored(case: TinyModel) -> dict[str, NDArray[np.float32]]:
    """The logit of each pair of texts, float32 ``[texts, 1]``, each computed by itself."""
    model = build(case)
    logits = [model(torch.tensor([ids]), token_type_ids=_types(case, len(ids))).logits for ids in texts(case)]
    return {"score": torch.cat(logits).numpy()}


def _types(case: TinyModel, length: int) -> torch.Tensor:
    start = second_at(case, length)
    return torch.tensor([[int(start is not None and place >= start) for place in range(length)]])


def _vectors(hidden: torch.Tensor) -> dict[str, torch.Tensor]:
    length = hidden.shape[0]
    weights = torch.arange(1, length + 1, dtype=hidden.dtype)[:, None]
    return {
        "cls": hidden[0],
        "max": hidden.max(0).values,
        "mean": hidden.mean(0),
        "mean_sqrt_len": hidden.sum(0) / length**0.5,
        "weighted_mean": (hidden * weights).sum(0) / weights.sum(),
        "last": hidden[-1],
    }
