"""A tiny model in transformers: float32 on the CPU, eager attention, RoPE fixed for one context window."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM, Mxfp4Config, PreTrainedModel
from transformers.activations import ACT2FN
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from tests.golden.checkpoint import write_checkpoint
from tests.golden.models.fp8 import FP8_CASES
from tests.golden.models.nvfp4 import NVFP4_CASES
from tests.golden.models.tiny import TinyModel
from tests.golden.oracle.fp8_numbers import write_numbers

AS_NUMBERS = (*FP8_CASES, *NVFP4_CASES)
"""Models whose weights are decoded before transformers reads them."""
LENGTH_DEPENDENT = ("dynamic", "longrope")


def build(case: TinyModel) -> PreTrainedModel:
    """The model of a case with its stored weights;
    each tensor must find its place and none may be missing.
    """
    if case.config["hidden_act"] == "fatrelu":  # transformers leaves it to the code of models
        threshold = {"threshold": case.config["hidden_act_param"], "value": 0.0}
        ACT2FN["fatrelu"] = (torch.nn.Threshold, threshold)
    # Without a GPU, transformers multiplies by MXFP4 weights as numbers only.
    numbers = {"quantization_config": Mxfp4Config(dequantize=True)}
    with tempfile.TemporaryDirectory() as folder:
        writes = write_numbers if case in AS_NUMBERS else write_checkpoint
        directory = writes(case, Path(folder) / "model")
        model, info = AutoModelForCausalLM.from_pretrained(
            directory,
            dtype=torch.float32,
            attn_implementation="eager",
            experts_implementation="eager",
            output_loading_info=True,
            **(numbers if "quantization_config" in case.config and case not in AS_NUMBERS else {}),
        )
    misplaced = {what: names for what, names in info.items() if names}
    assert not misplaced, f"{case.name}: {misplaced}"
    fix_rope(model, case.context_len)
    return model.eval()


def fix_rope(model: PreTrainedModel, context_len: int) -> None:
    """Resolve length-dependent frequencies as transformers would for a sequence of ``context_len`` tokens.

    Transformers recomputes them as a sequence grows; an engine fixes them once, so that cached keys stay
    valid.
    """
    for module in model.modules():
        if (kind := getattr(module, "rope_type", None)) in LENGTH_DEPENDENT:
            frequencies, module.attention_scaling = ROPE_INIT_FUNCTIONS[kind](
                module.config, "cpu", seq_len=context_len
            )
            module.register_buffer("inv_freq", frequencies, persistent=False)
            module.rope_type = "default"


@torch.no_grad()
def logits(model: PreTrainedModel, ids: list[int]) -> NDArray[np.float32]:
    """Logits ``[len(ids), vocab]`` of the whole sequence, computed afresh without a KV cache."""
    # With hidden states, Gemma 4 computes every row in layers that share keys, and needs no per-layer inputs.
    output = model(torch.tensor([ids]), use_cache=False, output_hidden_states=True)
    return output.logits[0].numpy()
