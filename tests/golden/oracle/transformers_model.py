"""A tiny model in transformers: float32 on the CPU, eager attention, RoPE fixed for one context window."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel
from transformers.activations import ACT2FN

from tests.golden.models.tiny import TinyModel
from tests.golden.tensors import as_float32, draw_tensors

LENGTH_DEPENDENT = ("dynamic", "longrope")


def build(case: TinyModel) -> PreTrainedModel:
    """The model of a case with its stored weights;
    each tensor must find its place and none may be missing.
    """
    fields = {key: value for key, value in case.config.items() if key != "model_type"}
    if fields["hidden_act"] == "fatrelu":  # transformers leaves it to the code of models
        ACT2FN["fatrelu"] = (torch.nn.Threshold, {"threshold": fields["hidden_act_param"], "value": 0.0})
    config = AutoConfig.for_model(case.config["model_type"], **fields)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32)
    weights = {name: torch.from_numpy(as_float32(stored)) for name, stored in draw_tensors(case)}
    if case.config["tie_word_embeddings"]:
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    model.load_state_dict(weights, strict=True)
    fix_rope(model, case.context_len)
    return model.eval()


def fix_rope(model: PreTrainedModel, context_len: int) -> None:
    """Resolve length-dependent frequencies as transformers would for a sequence of ``context_len`` tokens.

    Transformers recomputes them as a sequence grows; an engine fixes them once, so that cached keys stay
    valid.
    """
    for module in model.modules():
        if getattr(module, "rope_type", None) in LENGTH_DEPENDENT:
            module.inv_freq, module.attention_scaling = module.rope_init_fn(
                module.config, "cpu", seq_len=context_len
            )
            module.rope_type = "default"


@torch.no_grad()
def logits(model: PreTrainedModel, ids: list[int]) -> NDArray[np.float32]:
    """Logits ``[len(ids), vocab]`` of the whole sequence, computed afresh without a KV cache."""
    output = model(torch.tensor([ids]), use_cache=False)
    return output.logits[0].numpy()
